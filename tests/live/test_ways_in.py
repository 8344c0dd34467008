"""The ways to start a run, on a running Airflow: command line, with and without conf, form, schedule, backfill."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import httpx
import pytest
from tests.live.ways_in import ASKED

if TYPE_CHECKING:
    from tests.live.cloud import Cloud

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

PROJECT = Path(__file__).resolve().parents[2]
CHAIN = [
    "resolve_run", "stage_dataset", "package_trainer", "tokenize", "submit_training", "wait_for_training",
    "check_outputs", "decide_promotion", "promote_model", "end_run",
]  # fmt: skip


@dataclass(frozen=True)
class Approval:
    """What was seen when a person was asked."""

    run_key: str
    question: str
    promoted_before: str | None
    again: str
    """A second run of the same data, begun after it."""


@pytest.fixture(scope="module")
def approval(cloud: Cloud, rest: httpx.Client) -> Approval:
    """A person was asked and said yes; then the same was trained again."""
    detail = "/api/v2/dags/train_asked/dagRuns/asked_once/taskInstances/approve/-1/hitlDetails"
    cloud.until(lambda: rest.get(detail).status_code == 200, 300, lambda: cloud.states("train_asked", "asked_once"))
    run_key = cloud.plan("train_asked", "asked_once")["run_key"]
    before, question = cloud.story(run_key)["promoted"], rest.get(detail).json()["body"]
    cloud.until(lambda: _approved(cloud, rest, "asked_once"), 300, lambda: cloud.states("train_asked", "asked_once"))
    assert cloud.finish("train_asked", "asked_once") == "success"
    return Approval(run_key, question, before, cloud.trigger("train_asked", "not_asked", ASKED))


@pytest.fixture(scope="module")
def typed(cloud: Cloud, approval: Approval) -> str | None:
    """The run that was begun in the trigger form; None without a browser."""
    return _type_into_the_form(cloud) if browser() else None


@pytest.fixture(scope="module")
def runs(cloud: Cloud, approval: Approval, typed: str | None) -> dict[str, str]:
    """Runs by the command line, with and without conf, started one after the other."""
    with_conf = "with_conf"
    assert cloud.finish("train_manual", with_conf) == "success", cloud.states("train_manual", with_conf)
    without = cloud.trigger("train_manual", "without_conf", None)
    assert cloud.finish("train_manual", without) == "success", cloud.states("train_manual", without)
    return {"with_conf": with_conf, "without_conf": without}


@pytest.mark.case("C061")
@pytest.mark.case("C109")
@pytest.mark.case("C110")
def test_a_run_with_conf_json_trains_what_the_conf_says_and_promotes_it(cloud: Cloud, runs: dict[str, str]) -> None:
    plan = cloud.plan("train_manual", runs["with_conf"])
    assert (plan["trainer"]["steps"], plan["trainer"]["seed"], plan["data_date"]) == (4, 7, "2026-11-28")
    states = cloud.states("train_manual", runs["with_conf"])
    assert [name for name in CHAIN if states[name] != "success"] == []
    told = cloud.story(plan["run_key"])
    assert told["result"]["step"] == 4
    assert told["promoted"] == f"gs://local-llm-models/manual/versions/{plan['run_key']}-g1"


@pytest.mark.case("C059")
@pytest.mark.case("C061")
def test_a_run_without_conf_trains_what_the_experiment_says(cloud: Cloud, runs: dict[str, str]) -> None:
    plan = cloud.plan("train_manual", runs["without_conf"])
    assert (plan["conf"], plan["trainer"]["steps"]) == ({}, 6)
    assert cloud.story(plan["run_key"])["result"]["step"] == 6


def test_the_second_run_moves_no_package_and_promotes_only_what_is_better(cloud: Cloud, runs: dict[str, str]) -> None:
    assert "already" in cloud.log("train_manual", runs["without_conf"], "package_trainer")
    told = cloud.story(cloud.plan("train_manual", runs["without_conf"])["run_key"])
    champion = cloud.story(cloud.plan("train_manual", runs["with_conf"])["run_key"])
    better = told["decision"]["promote"]
    assert bool(told["promoted"]) is better
    assert champion["decision"]["promote"] is True
    assert cloud.states("train_manual", runs["without_conf"])["promote_model"] == ("success" if better else "skipped")


def test_the_job_has_gpus_and_labels_and_ran_once(cloud: Cloud, runs: dict[str, str]) -> None:
    run_key = cloud.plan("train_manual", runs["with_conf"])["run_key"]
    jobs = {job["labels"]["task"]: job for job in cloud.jobs(run_key)}
    assert set(jobs) - {"tokenize"} == {"submit_training"}  # another test may have made the tokens of this date
    assert len(jobs) == len(cloud.jobs(run_key))
    machine = jobs["submit_training"]["jobSpec"]["workerPoolSpecs"][0]["machineSpec"]
    assert machine["acceleratorType"] in {"NVIDIA_TESLA_T4", 5}
    ledger, requests = cloud.services.queue.snapshot()
    assert not [key for key in ledger.leases if run_key in key]
    assert not [request for request in requests if run_key in request.job_key]


def test_the_waiting_task_shows_the_replicas_lines_and_the_progress(cloud: Cloud, runs: dict[str, str]) -> None:
    log = cloud.log("train_manual", runs["with_conf"], "wait_for_training")
    assert "[workerpool0-0]" in log
    assert "step 4/4" in log


def test_the_promoted_folder_loads_with_transformers_and_its_loss_is_the_reported_one(
    cloud: Cloud, runs: dict[str, str], tmp_path: Path
) -> None:
    told = cloud.story(cloud.plan("train_manual", runs["with_conf"])["run_key"])
    work = cloud.services.settings.work
    champion = told["promoted"]
    tokens = next(line.split()[-1] for line in _arguments(cloud, told) if line.startswith(f"--tokens {work}/tokens/"))
    for uri, name in ((champion, "model"), (tokens, "tokens")):
        _download(cloud, uri, tmp_path / name)
    script = Path(__file__).with_name("recompute_loss.py")
    python = PROJECT / ".venv-trainer" / "bin" / "python"
    done = subprocess.run([python, script, tmp_path], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["loss"] == pytest.approx(told["result"]["eval_loss"], abs=1e-4)
    assert len(found["text"]) > 3


def _arguments(cloud: Cloud, told: dict[str, Any]) -> list[str]:
    """The training job's arguments as one line."""
    name = next(job["job_name"] for job in told["jobs"] if job["task"] == "submit_training")
    job = cloud.services.vertex("us-central1").get(name)
    given = job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"]
    return [f"{first} {second}" for first, second in itertools.pairwise(given)]


def _download(cloud: Cloud, folder: str, target: Path) -> None:
    for info in cloud.services.storage.list(folder + "/"):
        file = target / info.uri.removeprefix(folder + "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        cloud.services.storage.download_file(info.uri, file)


@pytest.mark.case("C054")
@pytest.mark.case("C057")
def test_a_backfill_reads_the_data_of_each_date_over_the_end_of_daylight_saving(cloud: Cloud) -> None:
    cloud.until(lambda: len(cloud.runs("train_dated", "backfill")) == 3, 60, lambda: cloud.runs("train_dated"))
    read: dict[str, str] = {}
    for run in cloud.runs("train_dated", "backfill"):
        assert cloud.finish("train_dated", run["dag_run_id"]) == "success"
        plan = cloud.plan("train_dated", run["dag_run_id"])
        assert plan["trainer"]["steps"] == 2
        read[run["logical_date"]] = plan["data_date"]
    # On the 25th it is 02:30 twice in Berlin, at 00:30 and at 01:30 UTC; Airflow runs once, at the second.
    assert read == {
        "2026-10-25T01:30:00Z": "2026-10-24",
        "2026-10-26T01:30:00Z": "2026-10-25",
        "2026-10-27T01:30:00Z": "2026-10-26",
    }


@pytest.mark.case("C053")
@pytest.mark.full
def test_a_date_that_has_a_run_is_trained_anew_with_a_new_conf_when_the_backfill_says_so(cloud: Cloud) -> None:
    cloud.until(lambda: bool(cloud.runs("train_dated", "backfill")), 60, lambda: cloud.runs("train_dated"))
    run = cloud.runs("train_dated", "backfill")[0]["dag_run_id"]
    assert cloud.finish("train_dated", run) == "success"
    cloud.airflow(
        "backfill", "create", "--dag-id", "train_dated", "--from-date", "2026-10-25", "--to-date", "2026-10-26",
        "--reprocess-behavior", "completed", "--dag-run-conf", '{"steps": 3}',
    )  # fmt: skip
    assert cloud.finish("train_dated", run) == "success"
    plan = cloud.plan("train_dated", run)
    assert plan["trainer"]["steps"] == 3
    generations = [job["labels"]["generation"] for job in _trainings(cloud, plan["run_key"])]
    assert (sorted(generations), cloud.story(plan["run_key"])["result"]["step"]) == (["1", "2"], 3)


def _trainings(cloud: Cloud, run_key: str) -> list[dict[str, Any]]:
    return [job for job in cloud.jobs(run_key) if job["labels"]["task"] == "submit_training"]


@pytest.mark.case("C057")
@pytest.mark.case("C058")
def test_the_schedule_starts_a_run_by_itself_and_enabling_a_dag_starts_none(cloud: Cloud) -> None:
    calm, busy = "train_calm", "train_busy"
    cloud.until(lambda: bool(cloud.runs(busy, "scheduled")), 180, lambda: cloud.runs(busy))
    run = cloud.runs(busy, "scheduled")[0]
    assert run["logical_date"] == run["run_after"]
    assert cloud.finish(busy, run["dag_run_id"]) == "success", cloud.states(busy, run["dag_run_id"])
    moment = datetime.fromisoformat(run["logical_date"]).astimezone(ZoneInfo("Europe/Berlin"))
    assert cloud.plan(busy, run["dag_run_id"])["data_date"] == (moment.date() - timedelta(days=1)).isoformat()
    assert cloud.runs(calm) == []


def _approved(cloud: Cloud, rest: httpx.Client, run: str) -> bool:
    """Say yes as often as it is asked: an answer right after the question can be lost (docs/guides/on-call.md)."""
    task = f"/api/v2/dags/train_asked/dagRuns/{run}/taskInstances/approve"
    if cloud.states("train_asked", run)["approve"] == "awaiting_input":
        answer = rest.patch(f"{task}/-1/hitlDetails", json={"chosen_options": ["Approve"], "params_input": {}})
        assert answer.status_code in {200, 409}, answer.text  # 409: answered already
    return cloud.states("train_asked", run)["approve"] == "success"


def test_where_the_experiment_says_so_a_person_approves_what_the_gate_found_good(
    cloud: Cloud, approval: Approval
) -> None:
    assert approval.promoted_before is None
    assert "there is no champion yet" in approval.question
    assert cloud.story(approval.run_key)["promoted"] == f"gs://local-llm-models/asked/versions/{approval.run_key}-g1"


def test_nobody_is_asked_about_a_model_that_is_no_better(cloud: Cloud, approval: Approval) -> None:
    assert cloud.finish("train_asked", approval.again) == "success"
    states = cloud.states("train_asked", approval.again)
    assert (states["approve"], states["promote_model"]) == ("skipped", "skipped")


def browser() -> str | None:
    """Chromium, from PATH or Debian's package."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


def _type_into_the_form(cloud: Cloud) -> str:
    """Begin a run in the trigger form, in a browser, and return its id."""
    from playwright.sync_api import sync_playwright

    cloud.wait_for_dag("train_watched")
    cloud.api.unpause("train_watched")
    options = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser(), args=options)
        page = chromium.new_page(viewport={"width": 1300, "height": 1600})
        page.set_default_timeout(60_000)
        page.goto(f"{cloud.endpoints['airflow']}/dags/train_watched")
        page.get_by_label("Username").fill(cloud.endpoints["airflow_user"])
        page.locator("input[type=password]").fill(cloud.endpoints["airflow_password"])
        page.locator("button[type=submit]").click()
        page.get_by_role("button", name="Trigger").first.click()
        page.get_by_role("button", name="Data", exact=True).click()
        page.locator("input#element_data_date").fill("2026-11-28")
        page.get_by_role("button", name="Training", exact=True).click()
        page.locator("[id='number-input:element_steps'] input").fill("3")
        page.get_by_role("button", name="Trigger").last.click()
        cloud.until(lambda: bool(cloud.runs("train_watched", "manual")), 60, lambda: cloud.runs("train_watched"))
        chromium.close()
    return str(cloud.runs("train_watched", "manual")[0]["dag_run_id"])


@pytest.mark.skipif(browser() is None, reason="needs Chromium: apt-get install chromium, or set CHROMIUM")
def test_the_trigger_form_in_a_browser_starts_a_run_with_what_was_typed(cloud: Cloud, typed: str) -> None:
    assert cloud.finish("train_watched", typed) == "success", cloud.states("train_watched", typed)
    plan = cloud.plan("train_watched", typed)
    assert plan["conf"] == {"steps": 3, "data_date": "2026-11-28"}
    assert cloud.story(plan["run_key"])["result"]["step"] == 3
