"""What `dags/train.py` makes of a folder of experiments."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import json, sys, warnings
warnings.simplefilter("ignore")
sys.path[:0] = sys.argv[1:]
import train
found = {value.dag_id: value for value in vars(train).values() if isinstance(value, train.DAG)}
print(json.dumps({
    dag_id: {
        "tasks": {task.task_id: sorted(task.downstream_task_ids) for task in dag.tasks},
        "kinds": {task.task_id: type(task).__name__ for task in dag.tasks},
        "tier": getattr(dag.task_dict.get("submit_training"), "scale_tier", None),
        "outlets": {task.task_id: [asset.name for asset in task.outlets] for task in dag.tasks if task.outlets},
        "setup": [task.task_id for task in dag.tasks if task.is_setup],
        "teardown": [task.task_id for task in dag.tasks if task.is_teardown],
        "schedule": str(getattr(dag.timetable, "summary", dag.schedule)),
        "zone": getattr(dag.timezone, "name", str(dag.timezone)),
        "sections": sorted({dag.params.get_param(name).schema.get("section", "") for name in dag.params}),
    }
    for dag_id, dag in found.items()
}))
"""


@pytest.fixture(scope="module")
def configs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's own experiments, one that needs approval, one without a schedule, a broken one."""
    folder = tmp_path_factory.mktemp("configs")
    source = ROOT / "include" / "configs"
    for name in ("experiments", "datasets", "environments"):
        (folder / name).mkdir()
        for file in (source / name).glob("*.yaml"):
            (folder / name / file.name).write_text(file.read_text())
    (folder / "gpu_pools.yaml").write_text((source / "gpu_pools.yaml").read_text())
    demo = yaml.safe_load((source / "experiments" / "stdlib_tiny.yaml").read_text())
    approved = {**demo, "promotion": {"approval": "required", "model": "shared-name"}}
    (folder / "experiments" / "approved.yaml").write_text(yaml.safe_dump(approved, default_flow_style=False))
    (folder / "experiments" / "by_hand.yaml").write_text(yaml.safe_dump({**demo, "schedule": None}))
    (folder / "experiments" / "Broken-Name.yaml").write_text("description: [\n")
    return folder


def loaded(configs: Path, home: Path, **variables: str) -> dict[str, Any]:
    """What a process that parses `train.py` finds, by DAG id."""
    environment = os.environ | {"TRAINOPS_CONFIGS": str(configs), "AIRFLOW_HOME": str(home)} | variables
    command = [sys.executable, "-c", SCRIPT, str(ROOT / "plugins"), str(ROOT / "dags")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def dags(configs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return loaded(configs, tmp_path_factory.mktemp("home"))


@pytest.mark.parametrize("dag_id", ["train_by_hand", "train_Broken-Name"])
def test_the_process_of_a_task_builds_its_own_dag_alone(configs: Path, tmp_path: Path, dag_id: str) -> None:
    assert list(loaded(configs, tmp_path, _AIRFLOW_PARSING_CONTEXT_DAG_ID=dag_id)) == [dag_id]


def test_there_is_one_dag_per_file_and_a_broken_one_has_one_task_that_tells(dags: dict[str, Any]) -> None:
    own = {"train_stdlib_tiny", "train_stdlib_docstrings"}
    assert set(dags) == {*own, "train_approved", "train_by_hand", "train_Broken-Name"}
    assert dags["train_Broken-Name"]["tasks"] == {"report_broken_experiment": []}


def test_the_chain_is_that_of_the_design(dags: dict[str, Any]) -> None:
    tasks = dags["train_stdlib_tiny"]["tasks"]
    for before, after in [
        ("resolve_run", "stage_dataset"), ("resolve_run", "package_trainer"), ("stage_dataset", "tokenize"),
        ("package_trainer", "tokenize"), ("tokenize", "submit_training"), ("submit_training", "wait_for_training"),
        ("wait_for_training", "check_outputs"), ("check_outputs", "decide_promotion"),
        ("decide_promotion", "promote_model"), ("promote_model", "end_run"),
    ]:  # fmt: skip
        assert after in tasks[before], (before, after)
    assert (dags["train_stdlib_tiny"]["setup"], dags["train_stdlib_tiny"]["teardown"]) == (["resolve_run"], ["end_run"])


def test_the_jobs_are_submitted_by_the_operator_of_old_and_waited_for_by_the_sensor(dags: dict[str, Any]) -> None:
    found = dags["train_stdlib_tiny"]
    assert found["kinds"]["submit_training"] == found["kinds"]["tokenize"] == "MLEngineStartTrainingJobOperator"
    assert found["kinds"]["wait_for_training"] == "TrainingJobSensor"
    assert found["tier"] == "CUSTOM"


def test_a_person_is_asked_only_where_the_experiment_says_so(dags: dict[str, Any]) -> None:
    assert "approve" not in dags["train_stdlib_tiny"]["tasks"]
    tasks = dags["train_approved"]["tasks"]
    assert "approve" in tasks["decide_promotion"]
    assert tasks["approve"] == ["promote_model"]


def test_a_promotion_updates_the_asset_of_the_model_whichever_experiment_trained_it(dags: dict[str, Any]) -> None:
    assert dags["train_stdlib_tiny"]["outlets"] == {"promote_model": ["model_stdlib_tiny"]}
    assert dags["train_approved"]["outlets"] == {"promote_model": ["model_shared_name"]}


def test_the_schedule_has_a_time_zone_or_is_none(dags: dict[str, Any]) -> None:
    assert dags["train_stdlib_tiny"]["zone"] == "Europe/Berlin"
    assert "30 2 * * *" in dags["train_stdlib_tiny"]["schedule"]
    assert dags["train_by_hand"]["schedule"] == "None"


def test_the_form_has_sections(dags: dict[str, Any]) -> None:
    assert dags["train_stdlib_tiny"]["sections"] == ["Data", "Machines", "Promotion", "Queue", "Training"]
