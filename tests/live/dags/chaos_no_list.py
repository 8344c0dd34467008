"""Broken on purpose, in this DAG's tasks alone: after an unclear create nobody lists; nor may the triggerer."""

from __future__ import annotations

from typing import Any

from chaos_run import chaos_dag  # type: ignore[import-not-found]  # beside this file, on Airflow's path

from trainops.gcp.vertex import Vertex


def no_list(_vertex: Vertex, *_filter: Any, **_mask: Any) -> list[dict[str, Any]]:
    """Find nothing."""
    return []


Vertex.list = no_list  # type: ignore[method-assign, assignment]
dag = chaos_dag("chaos_no_list", deferrable=False)  # Airflow looks for these words: airflow, dag
