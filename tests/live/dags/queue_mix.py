"""One job of the trainer that takes its GPUs from the queue; the conf of a run says how many, and names its plan."""

from __future__ import annotations

import pendulum
from airflow.sdk import DAG

from trainops.operators.mlengine import MLEngineStartTrainingJobOperator

with DAG(
    "queue_mix", schedule=None, start_date=pendulum.datetime(2026, 1, 1, tz="UTC"), catchup=False, max_active_runs=64,
    default_args={"retries": 5, "retry_delay": pendulum.duration(seconds=1)},
) as dag:  # fmt: skip
    MLEngineStartTrainingJobOperator(
        task_id="train",
        experiment="mix",
        run_key="{{ run_id }}",
        plan="{{ dag_run.conf['plan'] }}",
        training_input={
            "scaleTier": "CUSTOM",
            "region": "us-central1",
            "masterType": "{{ dag_run.conf['machine'] }}",
            "masterConfig": {"acceleratorConfig": {"type": "NVIDIA_L4", "count": "{{ dag_run.conf['gpus'] }}"}},
        },
        package_uris=["{{ dag_run.conf['package'] }}"],
        training_python_module="trainer.task",
        training_args=["--tokens", "{{ dag_run.conf['tokens'] }}"],
        wait=True,
    )
