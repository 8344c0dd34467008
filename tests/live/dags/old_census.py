"""A DAG file of AI Platform's days, after `ruff --fix` and one change of an import: it waits in the triggerer."""

from datetime import datetime

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

from trainops.providers.google.cloud.operators.mlengine import (
    MLEngineStartTrainingJobOperator,
    MLEngineTrainingCancelJobOperator,
)

PROJECT_ID = "local-llm"

with DAG("old_census", schedule=None, start_date=datetime(2021, 1, 1), catchup=False) as dag:
    begin = EmptyOperator(task_id="begin")
    train = MLEngineStartTrainingJobOperator(
        task_id="train",
        project_id=PROJECT_ID,
        region="us-central1",
        job_id="census_{{ ds_nodash }}",
        job_dir="gs://my-bucket/census/{{ ds }}",
        package_uris=["gs://my-bucket/census-0.1.tar.gz"],
        training_python_module="census.task",
        training_args=["--train-steps", "3", "--date={{ ds }}"],
        scale_tier="BASIC_GPU",
        runtime_version="2.3",
        python_version="3.7",
        labels={"team": "ads"},
        gcp_conn_id="google_cloud_default",
        deferrable=True,
    )
    cancel = MLEngineTrainingCancelJobOperator(
        task_id="cancel",
        project_id=PROJECT_ID,
        job_id="{{ ti.xcom_pull('train', key='job_id') }}",
        trigger_rule="one_failed",
    )
    begin >> train >> cancel
