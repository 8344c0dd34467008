"""Builds the DAG that is disturbed: a job is submitted with a GPU, and a sensor waits for it."""

from __future__ import annotations

import pendulum
from airflow.sdk import DAG

from trainops.operators.mlengine import MLEngineStartTrainingJobOperator
from trainops.sensors.training_job import TrainingJobSensor

PROGRAM = "import sys, time; time.sleep(float(sys.argv[1])); print('it ends'); sys.exit(int(sys.argv[2]))"
KEPT_UP = {"retries": 30, "retry_delay": pendulum.duration(seconds=1)}
"""A kill of a task's process costs a try of it."""


def chaos_dag(dag_id: str, *, deferrable: bool = True, timeout: pendulum.Duration | None = None) -> DAG:
    """Give the DAG; the conf of a run says for how many `seconds` its job works and with which `code` it exits."""
    with DAG(
        dag_id, schedule=None, start_date=pendulum.datetime(2026, 1, 1, tz="UTC"), catchup=False, max_active_runs=32,
        dagrun_timeout=timeout,
        default_args=KEPT_UP,
    ) as dag:  # fmt: skip
        submit = MLEngineStartTrainingJobOperator(
            task_id="train",
            run_key="{{ run_id }}",
            experiment="chaos",
            deferrable=deferrable,
            training_input={
                "scaleTier": "CUSTOM",
                "masterType": "n1-standard-8",
                "region": "us-central1",
                "masterConfig": {
                    "acceleratorConfig": {"type": "NVIDIA_TESLA_V100", "count": "1"},
                    "imageUri": "example.com/any/image",
                    "containerCommand": ["python", "-u", "-c", PROGRAM],
                    "containerArgs": ["{{ dag_run.conf['seconds'] }}", "{{ dag_run.conf['code'] }}"],
                },
            },
        )
        TrainingJobSensor(task_id="wait", run=submit.output)
    return dag
