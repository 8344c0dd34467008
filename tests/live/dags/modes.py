"""An old job, submitted by the operator and waited for in each of the sensor's modes; no experiment is involved."""

from __future__ import annotations

import pendulum
from airflow.sdk import DAG

from trainops.providers.google.cloud.operators.mlengine import MLEngineStartTrainingJobOperator
from trainops.sensors.training_job import TrainingJobSensor

with DAG("modes", schedule=None, start_date=pendulum.datetime(2026, 1, 1, tz="UTC"), catchup=False) as dag:
    submit = MLEngineStartTrainingJobOperator(
        task_id="submit",
        job_id="modes_of_waiting",
        scale_tier="CUSTOM",
        master_type="n1-standard-8",
        master_config={
            "acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": "1"},
            "imageUri": "example.com/any/image",
            "containerCommand": ["python", "-u", "-c"],
            "containerArgs": ["import time; print('the replica speaks'); time.sleep(20); print('and ends')"],
        },
        region="us-central1",
        wait=False,  # the old operator waited by itself; here the sensors are what is tested
    )
    for mode in ("deferrable", "poke", "reschedule"):
        submit >> TrainingJobSensor(
            task_id=f"wait_{mode}",
            run=submit.output,
            deferrable=mode == "deferrable",
            mode="reschedule" if mode == "reschedule" else "poke",
            poke_interval=3,
        )
