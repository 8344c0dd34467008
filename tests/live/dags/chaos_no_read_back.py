"""Broken on purpose, in this DAG's tasks alone: a record is written without looking what is there by now."""

from __future__ import annotations

from collections.abc import Callable

from chaos_run import chaos_dag  # type: ignore[import-not-found]  # beside this file, on Airflow's path

from trainops.policy.record import Record
from trainops.steps.record_store import RecordStore


def change_without_match(store: RecordStore, changed: Callable[[Record | None], Record | None]) -> Record | None:
    """Write over whatever others wrote since."""
    found = store.read()
    before = found[0] if found is not None else None
    after = changed(before)
    if after is not None and after != before:
        store.storage.write_json(store.uri, after.to_json(), generation=None)
    return after or before


RecordStore.change = change_without_match  # type: ignore[method-assign, assignment]
dag = chaos_dag("chaos_no_read_back")  # Airflow looks for these words: airflow, dag
