"""What happens to a run when things go wrong, on a running Airflow, judged by the jobs that the stand-in has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from trainops.policy.record import TaskTry
from trainops.steps.record_store import RecordStore
from trainops.steps.run import Run
from trainops.steps.start import JobRequest, begin

if TYPE_CHECKING:
    from tests.live.cloud import Cloud

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

SLOW = {"steps": 6_000, "batch_size": 4, "warmup_steps": 1, "eval_every": 0, "checkpoint_every": 500, "log_every": 200}
TERMINAL = {"JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED"}


@pytest.mark.case("C063")
def test_a_bad_conf_fails_the_first_task_once_and_nothing_is_submitted(cloud: Cloud) -> None:
    cloud.wait_for_dag("train_manual")
    cloud.api.unpause("train_manual")
    run = cloud.trigger("train_manual", "bad_conf", {"stepz": 4})
    assert cloud.finish("train_manual", run, 120) == "failed"
    log = cloud.log("train_manual", run, "resolve_run")
    assert "conf: stepz" in log
    assert "did you mean 'steps'?" in log
    tries = cloud.tries("train_manual", run)
    assert tries["resolve_run"] == 1
    assert cloud.states("train_manual", run)["submit_training"] == "upstream_failed"


def test_a_second_experiment_is_a_dag_and_a_broken_one_fails_alone_with_its_error(cloud: Cloud) -> None:
    good = cloud.add_experiment("second")
    (cloud.configs / "experiments" / "broken.yaml").write_text("description: [unclosed\n")
    (cloud.home.dags / "train.py").touch()
    cloud.wait_for_dag(good)
    cloud.wait_for_dag("train_broken")
    assert cloud.api.import_errors() == []
    cloud.api.unpause("train_broken")
    run = cloud.trigger("train_broken", "once")
    assert cloud.finish("train_broken", run, 120) == "failed"
    assert list(cloud.states("train_broken", run)) == ["report_broken_experiment"]
    assert "broken.yaml" in cloud.log("train_broken", run, "report_broken_experiment")


@pytest.mark.case("C030")
def test_the_sensor_gives_the_same_verdict_in_all_its_modes(cloud: Cloud) -> None:
    cloud.wait_for_dag("modes")
    cloud.api.unpause("modes")
    run = cloud.trigger("modes", "all_modes")
    assert cloud.finish("modes", run) == "success", cloud.states("modes", run)
    for mode in ("deferrable", "poke", "reschedule"):
        given = cloud.api.return_value("modes", run, f"wait_{mode}")
        assert given["verdict"] == "succeeded"
        lines = cloud.log("modes", run, f"wait_{mode}").splitlines()
        for text in ("the replica speaks", "and ends"):  # one before the task waited, one long after
            assert sum(text in line and "workerpool0-0" in line for line in lines) == 1, (mode, text, lines)


@pytest.mark.case("C020")
def test_marking_the_waiting_task_failed_cancels_the_job_and_frees_its_gpus(cloud: Cloud, rest: httpx.Client) -> None:
    dag = cloud.add_experiment("stopped", training={**SLOW, "steps": 100_000})
    (cloud.home.dags / "train.py").touch()
    cloud.wait_for_dag(dag)
    cloud.api.unpause(dag)
    run = cloud.trigger(dag, "marked_failed", {"data_date": "2026-11-28"})
    cloud.until(
        lambda: cloud.states(dag, run).get("wait_for_training") == "deferred", 240, lambda: cloud.states(dag, run)
    )
    task = f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/wait_for_training"
    rest.patch(task, json={"new_state": "failed"}).raise_for_status()
    run_key = cloud.plan(dag, run)["run_key"]

    def cancelled() -> bool:
        states = {job["labels"]["task"]: job["state"] for job in cloud.jobs(run_key)}
        return bool(states["submit_training"] == "JOB_STATE_CANCELLED")

    cloud.until(cancelled, 60, lambda: cloud.jobs(run_key))
    assert cloud.finish(dag, run) == "failed"
    assert cloud.states(dag, run)["end_run"] == "success"
    assert {job["state"] for job in cloud.jobs(run_key)} <= TERMINAL
    ledger, requests = cloud.services.queue.snapshot()
    assert not [key for key in [*ledger.leases, *(request.job_key for request in requests)] if run_key in key]


def test_housekeeping_ends_the_job_of_a_dag_run_that_airflow_does_not_know(cloud: Cloud) -> None:
    owner = TaskTry(dag_id="train_manual", run_id="deleted_long_ago", task_id="submit_training")
    machine = {"imageUri": "example.com/any/image", "containerCommand": ["python", "-c"]}
    body = {
        "scaleTier": "CUSTOM",
        "masterType": "n1-standard-8",
        "region": "us-central1",
        "masterConfig": {**machine, "containerArgs": ["import time; time.sleep(600)"]},
    }
    request = JobRequest(
        job_key="lost-submit_training", run_key="lost", experiment="manual", task="submit_training",
        display_name="lost", training_input=body,
    )  # fmt: skip
    settings, storage = cloud.services.settings, cloud.services.storage
    uri = f"{settings.work}/runs/manual/lost/submit_training.json"
    begin(storage, settings, uri, request, owner, actor="a process that died")
    Run(cloud.services, uri, actor="a process that died").advance()
    assert [job["state"] in TERMINAL for job in cloud.jobs("lost")] == [False]
    cloud.wait_for_dag("housekeeping")
    cloud.api.unpause("housekeeping")
    run = cloud.trigger("housekeeping", "by_hand")
    assert cloud.finish("housekeeping", run, 120) == "success", cloud.log("housekeeping", run, "end_abandoned_runs")
    # Enabling the DAG starts its last quarter of an hour as well: one of the two runs did it.
    record = RecordStore(storage, uri).load()
    assert record.cancel is not None
    assert (record.cancel.by, record.cancel.why) == ("housekeeping", "its DAG run deleted_long_ago is gone")
    assert [job["state"] for job in cloud.jobs("lost")] == ["JOB_STATE_CANCELLED"]
