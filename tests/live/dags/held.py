"""Two old jobs that last: one task waits for its job on a worker, the other in the triggerer."""

from __future__ import annotations

import pendulum
from airflow.sdk import DAG

from trainops.providers.google.cloud.operators.mlengine import MLEngineStartTrainingJobOperator

LASTING = """
import os, time
folder = os.environ["TRAINOPS_CONTROL_URI"]
time.sleep(600 if "/g1/" in folder or "/on_a_worker/" in folder else 1)
"""

with DAG("held", schedule=None, start_date=pendulum.datetime(2026, 1, 1, tz="UTC"), catchup=False) as dag:
    for task, deferrable in (("on_a_worker", False), ("in_the_triggerer", True)):
        MLEngineStartTrainingJobOperator(
            task_id=task,
            job_id=task,
            scale_tier="CUSTOM",
            master_type="n1-standard-8",
            master_config={
                "imageUri": "example.com/any/image",
                "containerCommand": ["python", "-u", "-c"],
                "containerArgs": [LASTING],
            },
            region="us-central1",
            deferrable=deferrable,
            retries=3,
            retry_delay=pendulum.duration(seconds=1),
        )
