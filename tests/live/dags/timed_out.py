"""A run that may take a minute, and a job that takes longer."""

from __future__ import annotations

import pendulum
from chaos_run import chaos_dag  # type: ignore[import-not-found]  # beside this file, on Airflow's path

dag = chaos_dag("timed_out", timeout=pendulum.duration(seconds=60))  # Airflow looks for these words: airflow, dag
