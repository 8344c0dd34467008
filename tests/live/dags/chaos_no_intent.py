"""Broken on purpose, in this DAG's tasks alone: no intent is written before a create. `tests.chaos` must see it."""

from __future__ import annotations

from chaos_run import chaos_dag  # type: ignore[import-not-found]  # beside this file, on Airflow's path

from trainops.policy.record import Record
from trainops.steps.record_store import RecordStore

swap = RecordStore.swap


def without_intent(store: RecordStore, seen: Record, after: Record) -> Record | None:
    """Write all but the intent."""
    return after if after.story[-1].what.startswith("intends") else swap(store, seen, after)


RecordStore.swap = without_intent  # type: ignore[method-assign, assignment]
dag = chaos_dag("chaos_no_intent")  # Airflow looks for these words: airflow, dag
