"""`trainops lineage`, from a version to the files of its rows and the price of its jobs."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.promotion.conftest import MODEL, Training, make_plan

from trainops import cli, naming
from trainops.config.dataset import Dataset
from trainops.gcp.storage import Storage
from trainops.jobspec.cost import job_cost
from trainops.settings import Settings
from trainops.steps.outcome import check_outputs
from trainops.steps.staging import Staged, stage_dataset

if TYPE_CHECKING:
    from tests.integration.promotion.conftest import Registry

pytestmark = pytest.mark.usefixtures("environment")


@pytest.fixture
def staged(storage: Storage, settings: Settings, tmp_path: Path) -> Staged:
    """Twelve pages of text, staged under the name that the plan has for them."""
    folder = tmp_path / "pages"
    folder.mkdir()
    for number in range(12):
        (folder / f"page-{number:02}.txt").write_text(f"page {number}")
    dataset = Dataset(name="stdlib", description="pages", path=str(folder), include=["*.txt"])
    return stage_dataset(storage, dataset, date(2026, 11, 29), settings.work)


@pytest.fixture
def promoted(registry: Registry, storage: Storage, settings: Settings, staged: Staged) -> str:
    """A version that was trained on them, in production."""
    plan = make_plan()
    training = Training(storage, settings, plan)
    training.tokens = naming.tokens_folder(settings.work, staged.sha16, "b" * 16)
    training.write_all()
    storage.write_json(f"{training.folder}/plan.json", plan.to_json(), generation=None)
    check_outputs(storage, plan, 1, settings)
    registry.promote(plan)
    return registry.version(plan)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    assert cli.main(["lineage", MODEL, *arguments, "--output", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_it_walks_to_the_files_the_package_the_config_and_the_jobs(
    promoted: str, staged: Staged, capsys: pytest.CaptureFixture[str]
) -> None:
    found = told(capsys)
    assert (found["version"], found["channels"], found["gone"]) == (promoted, ["production"], [])
    assert found["data"]["uri"] == staged.uri
    assert [Path(one["source"]).name for one in found["data"]["sources"]] == [f"page-{n:02}.txt" for n in range(12)]
    assert found["run"]["owner"] == "language-team"
    assert found["packages"][0].endswith("trainer-0.1.0.tar.gz")
    assert [(job["job_name"], job["hours"]) for job in found["jobs"]] == [("customJobs/1", 1.5)]


def test_the_price_of_its_jobs_is_that_of_their_hours(promoted: str, capsys: pytest.CaptureFixture[str]) -> None:
    machines = {"machineSpec": {"machineType": "n1-standard-8"}, "replicaCount": "2"}
    per_hour = job_cost({"jobSpec": {"workerPoolSpecs": [machines]}}, "us-central1").per_hour
    assert per_hour
    found = told(capsys, "--version", promoted)
    assert found["cost"] == {"usd": pytest.approx(float(per_hour) * 1.5, abs=1e-4), "not_counted": []}


def test_for_people_ten_files_are_named_and_all_when_asked(promoted: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lineage", MODEL]) == 0
    shown = capsys.readouterr().out
    assert promoted in shown
    assert "page-09.txt" in shown
    assert "page-10.txt" not in shown
    assert "and 2 more" in shown
    assert cli.main(["lineage", MODEL, "--files"]) == 0
    assert "page-11.txt" in capsys.readouterr().out


@pytest.mark.usefixtures("promoted")
def test_what_was_deleted_is_said_to_be_gone(
    storage: Storage, staged: Staged, capsys: pytest.CaptureFixture[str]
) -> None:
    storage.delete(f"{staged.uri}/manifest.json")
    assert told(capsys)["gone"] == ["data"]
    assert cli.main(["lineage", MODEL]) == 0
    assert "gone by now" in capsys.readouterr().out


def test_another_name_is_refused_with_the_nearest(promoted: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lineage", "stdlib-tinny"]) == 2
    assert f"did you mean '{MODEL}'" in capsys.readouterr().err
    assert cli.main(["lineage", MODEL, "--version", promoted[:-1] + "2"]) == 2
    assert f"did you mean '{promoted}'" in capsys.readouterr().err
