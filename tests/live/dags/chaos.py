"""The product as it is, between kills of `tests.chaos`."""

from __future__ import annotations

from chaos_run import chaos_dag  # type: ignore[import-not-found]  # beside this file, on Airflow's path

dag = chaos_dag("chaos")  # Airflow looks for these words: airflow, dag
