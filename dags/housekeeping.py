"""Every 15 minutes: end what nobody follows any more."""

from __future__ import annotations

import pendulum
from airflow.sdk import DAG

from trainops.dag_kit import tasks
from trainops.dag_kit.arguments import DEFAULT_ARGS

DOC = """
### housekeeping

Looks at every job, lease and queue request that carries our label, and ends those whose DAG run is over or gone: after
a kill that left no process, a `dagrun_timeout`, a deleted DAG run. What belongs to a run that is active is left alone.

If it fails, its log names the job key that could not be ended and why; the next run tries again. A job that it cannot
cancel must be cancelled in Google's console.
"""

with DAG(
    dag_id="housekeeping",
    description="End jobs, leases and queue requests that no run follows any more",
    doc_md=DOC,
    schedule="*/15 * * * *",
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    tags=["trainops", "housekeeping"],
    default_args={**DEFAULT_ARGS, "owner": "trainops"},
) as dag:
    tasks.end_abandoned_runs()
