"""DAG files as they were written for AI Platform, after `ruff --fix` and one change of an import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROBE = Path(__file__).with_name("dag_probe.py")
NEW_MODULE = "trainops.providers.google.cloud.operators.mlengine"

OF_2019 = """
import datetime

from airflow import DAG
from airflow.contrib.operators.mlengine_operator import MLEngineTrainingOperator
from airflow.operators.dummy_operator import DummyOperator

default_args = {
    'owner': 'ads',
    'depends_on_past': False,
    'start_date': datetime.datetime(2019, 5, 1),
    'retries': 1,
    'project_id': 'my-project',
}

dag = DAG('old', schedule_interval='@daily', default_args=default_args, catchup=False)

begin = DummyOperator(task_id='begin', dag=dag)
train = MLEngineTrainingOperator(
    task_id='train',
    job_id='census_{{ ds_nodash }}',
    package_uris=['gs://my-bucket/census-0.1.tar.gz'],
    training_python_module='trainer.task',
    training_args=['--train-steps', '1000', '--date={{ ds }}'],
    region='us-central1',
    scale_tier='BASIC_GPU',
    runtime_version='1.13',
    python_version=3.5,
    dag=dag,
)
begin.set_downstream(train)
"""

OF_2021 = """
import os
from datetime import datetime

from airflow import models
from airflow.operators.dummy import DummyOperator
from airflow.providers.google.cloud.operators.mlengine import (
    MLEngineStartTrainingJobOperator,
    MLEngineTrainingCancelJobOperator,
)

PROJECT_ID = os.environ.get("GCP_PROJECT_ID", "my-project")

with models.DAG("old", schedule_interval=None, start_date=datetime(2021, 1, 1), catchup=False) as dag:
    begin = DummyOperator(task_id="begin")
    train = MLEngineStartTrainingJobOperator(
        task_id="train",
        project_id=PROJECT_ID,
        region="us-central1",
        job_id="census_{{ ts_nodash }}",
        job_dir="gs://my-bucket/census",
        scale_tier="CUSTOM",
        master_type="n1-standard-8",
        master_config={"imageUri": "gcr.io/my-project/census:1"},
        labels={"team": "ads"},
        gcp_conn_id="google_cloud_default",
        cancel_on_kill=False,
    )
    cancel = MLEngineTrainingCancelJobOperator(
        task_id="cancel",
        project_id=PROJECT_ID,
        job_id="{{ ti.xcom_pull('train', key='job_id') }}",
        trigger_rule="one_failed",
    )
    begin >> train >> cancel
"""


def moved(text: str, folder: Path) -> Path:
    """Write the DAG file, let ruff mend what Airflow 3 removed, and change the import of the operators."""
    file = folder / "old.py"
    file.write_text(text)
    ruff = [
        str(Path(sys.executable).with_name("ruff")),
        "check",
        "--isolated",
        "--select",
        "AIR,F401",
        "--ignore",
        "AIR311",
        "--fix",
    ]
    subprocess.run([*ruff, "--quiet", "--exit-zero", str(file)], check=True, capture_output=True, timeout=60)
    mended = file.read_text()
    for module in ("airflow.contrib.operators.mlengine_operator", "airflow.providers.google.cloud.operators.mlengine"):
        mended = mended.replace(f"from {module} import", f"from {NEW_MODULE} import")
    file.write_text(mended)
    return file


def loaded(folder: Path, home: Path) -> dict[str, Any]:
    """What Airflow makes of the folder, in an interpreter of its own."""
    base = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "TRAINOPS"))}
    paths = {"AIRFLOW_HOME": str(home), "PYTHONPATH": str(ROOT / "plugins")}
    command = [sys.executable, "-W", "ignore", str(PROBE), str(folder)]
    done = subprocess.run(command, env=base | paths, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("text", [OF_2019, OF_2021], ids=["2019", "2021"])
def test_an_old_dag_file_is_a_dag_again_and_its_task_is_ours(text: str, tmp_path: Path) -> None:
    folder = tmp_path / "dags"
    folder.mkdir()
    moved(text, folder)
    found = loaded(folder, tmp_path / "home")
    assert found["errors"] == {}
    tasks = {task["__var"]["task_id"]: task["__var"] for task in found["dags"]["old"]["serialized"]["dag"]["tasks"]}
    assert tasks["train"]["_task_module"] == NEW_MODULE
    assert tasks["train"]["task_type"] == "MLEngineStartTrainingJobOperator"
    assert tasks["train"]["region"] == "us-central1"
    assert tasks["train"]["project_id"] == "my-project"
    assert "train" in tasks["begin"]["downstream_task_ids"]
