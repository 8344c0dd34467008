"""Promote a version by hand, or roll back, once a person has approved."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pendulum
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, Param

from trainops.dag_kit import channel_tasks
from trainops.dag_kit.arguments import DEFAULT_ARGS

DOC = """
### promote

Points a channel of a model at another version: **roll back** when the model in production misbehaves (leave `version`
empty: the version before the current one), or **promote by hand** what the gate of a run refused. Nothing is copied or
deleted, so it takes seconds and can be undone in the same way.

1. Trigger it: `airflow dags trigger promote --conf '{"model": "stdlib-tiny", "reason": "answers in French"}'`.
2. `describe_change` tells what is in the channel and what would be. Read it, then answer `approve` under *Required
   Actions*.
3. `change_channel` swaps the pointer. It refuses when the channel moved since `describe_change` looked: trigger again.

The asset of the model (`model_stdlib_tiny`) is updated, with the version in the event's extra, as by a run.
`trainops models history MODEL` tells what happened to a channel; `trainops models show MODEL` lists its versions.
Without Airflow: `trainops models rollback MODEL`. A later run promotes over it when its version is better by the gate's
rules; to keep runs from that, set `promote: never` in the experiment.
"""

with DAG(
    dag_id="promote",
    description="Promote a version of a model by hand, or roll back, with approval",
    doc_md=DOC,
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    tags=["models", "trainops"],
    default_args={**DEFAULT_ARGS, "owner": "trainops"},
    params={
        "model": Param(
            type="string", minLength=1, title="Model", description="Name, as `trainops models` lists it. Required."
        ),
        "version": Param(
            None, type=["null", "string"], title="Version", description="Empty: the version before the current one."
        ),
        "channel": Param("production", type="string", enum=["production", "candidate"], title="Channel"),
        "reason": Param("", type="string", maxLength=500, title="Reason", description="Kept in the channel's history."),
    },
) as dag:
    # Calling a task gives a reference to its result, where the function itself takes the result.
    change: Any = channel_tasks.describe_change()
    approve = ApprovalOperator(
        task_id="approve",
        subject="Change the channel {{ params.channel }} of {{ params.model }}?",
        body="{{ ti.xcom_pull(task_ids='describe_change')['text'] }}",
        response_timeout=timedelta(days=7),
    )
    approval: Any = approve.output
    change >> approve
    channel_tasks.change_channel(change, approval)
