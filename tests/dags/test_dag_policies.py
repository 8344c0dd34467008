"""What every DAG file of this project keeps to."""

import ast
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DAGS = ROOT / "dags"
PROBE = Path(__file__).with_name("dag_probe.py")


def probe(home: Path, **environment: str) -> dict[str, Any]:
    """Load all DAG files in a fresh interpreter with these environment variables."""
    base = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "TRAINOPS"))}
    paths = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),  # registers the timetables that DAGs use
        "PYTHONPATH": os.pathsep.join([str(ROOT / "plugins"), str(DAGS)]),
    }
    command = [sys.executable, str(PROBE), str(DAGS)]
    done = subprocess.run(
        command, env=base | paths | environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the DAG files hold, with one hash seed, and with catchup off by default."""
    return probe(tmp_path_factory.mktemp("airflow"), PYTHONHASHSEED="1", AIRFLOW__SCHEDULER__CATCHUP_BY_DEFAULT="False")


@pytest.fixture(scope="module")
def found_again(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same in another interpreter: another hash seed, the opposite default for catchup."""
    return probe(tmp_path_factory.mktemp("airflow"), PYTHONHASHSEED="2", AIRFLOW__SCHEDULER__CATCHUP_BY_DEFAULT="True")


def test_every_file_loads(found: dict[str, Any]) -> None:
    assert found["errors"] == {}
    assert {dag["file"] for dag in found["dags"].values()} == {file.name for file in DAGS.glob("*.py")}


def test_every_experiment_has_its_dag(found: dict[str, Any]) -> None:
    experiments = {f"train_{file.stem}" for file in (ROOT / "include/configs/experiments").glob("*.yaml")}
    assert experiments
    assert experiments <= set(found["dags"])


def test_every_dag_has_an_owner_tags_and_a_description(found: dict[str, Any]) -> None:
    for dag_id, dag in found["dags"].items():
        assert dag["owner"] not in {"", "airflow"}, f"{dag_id} has no owner of its own"
        assert dag["tags"], f"{dag_id} has no tags"
        assert len(dag["doc"]) > 40, f"{dag_id} says nothing in doc_md"


def test_the_start_date_is_static(found: dict[str, Any], found_again: dict[str, Any]) -> None:
    for dag_id, dag in found["dags"].items():
        assert dag["start_date"], f"{dag_id} has no start date"
        assert dag["start_date"] == found_again["dags"][dag_id]["start_date"], f"the start date of {dag_id} moves"
        age = datetime.now(UTC) - datetime.fromisoformat(dag["start_date"])
        assert age > timedelta(hours=1), f"{dag_id} starts in the future or just now"


@pytest.mark.parametrize("file", sorted(DAGS.glob("*.py")), ids=lambda file: file.name)
def test_no_file_asks_for_the_time_while_it_is_parsed(file: Path) -> None:
    calls = [node.func for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    names = {func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "") for func in calls}
    assert not names & {"now", "utcnow", "today", "days_ago"}, "each parse would make a new version of the DAG"


@pytest.mark.parametrize("file", sorted(DAGS.glob("*.py")), ids=lambda file: file.name)
def test_every_dag_states_its_schedule_and_catchup(file: Path) -> None:
    calls = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    dags = [call for call in calls if getattr(call.func, "id", "") in {"DAG", "dag"}]
    assert dags, f"{file.name} makes no DAG"
    for call in dags:
        stated = {keyword.arg for keyword in call.keywords}
        missing = {"schedule", "catchup"} - stated
        assert not missing, f"{file.name}:{call.lineno} leaves {', '.join(sorted(missing))} to Airflow's defaults"


@pytest.mark.case("C099")
@pytest.mark.case("C100")
@pytest.mark.case("C101")
def test_importing_the_files_loads_nothing_heavy(found: dict[str, Any]) -> None:
    assert found["heavy"] == []


@pytest.mark.case("C064")
def test_serialized_dags_do_not_depend_on_the_hash_seed_or_on_defaults_for_catchup(
    found: dict[str, Any], found_again: dict[str, Any]
) -> None:
    assert found["dags"].keys() == found_again["dags"].keys()
    for dag_id, dag in found["dags"].items():
        assert dag["serialized"] == found_again["dags"][dag_id]["serialized"], f"{dag_id} serializes differently"
