"""A sample of a DAG that uses a promoted model: it runs whenever a channel of `stdlib-tiny` changes."""

from __future__ import annotations

import pendulum
from airflow.sdk import DAG, Asset

from trainops.dag_kit import channel_tasks
from trainops.dag_kit.arguments import DEFAULT_ARGS
from trainops.naming import model_asset

MODEL = "stdlib-tiny"
DOC = """
### use_stdlib_tiny

A sample to copy: what uses a model is scheduled on the model's asset, reads the channel's pointer, and takes the
version that stands there. `read_model` logs version and URI; put what serves or tests the model after it.

It runs after a promotion by a run, and after a rollback or a promotion by hand in the DAG `promote`, also of the
channel `candidate`; the event's extra tells channel, version and URI. Several changes in a short time may give one run.
If `read_model` is skipped, nothing was promoted to `production` yet. `trainops models rollback`, outside Airflow,
updates no asset.
"""

with DAG(
    dag_id="use_stdlib_tiny",
    description="Sample of a DAG that uses the promoted model of stdlib_tiny",
    doc_md=DOC,
    schedule=[Asset(model_asset(MODEL))],
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    tags=["models", "sample", "trainops"],
    default_args={**DEFAULT_ARGS, "owner": "trainops"},
) as dag:
    channel_tasks.read_model(MODEL)
