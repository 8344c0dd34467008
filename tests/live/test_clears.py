"""What people do to a run from Airflow's pages, and what becomes of its job: the stand-in's jobs are the judge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from tests.chaos.airflow import Airflow

if TYPE_CHECKING:
    from tests.live.cloud import Cloud

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

ENDS, FAILS, LASTS = ({"seconds": seconds, "code": code} for seconds, code in ((1, 0), (1, 2), (900, 0)))
"""Conf of runs: exit code 2 says that a retry cannot help."""


@pytest.fixture(scope="module")
def airflow(cloud: Cloud) -> Iterator[Airflow]:
    """All runs begin at once, and go on side by side."""
    airflow = Airflow.of(cloud)
    for dag in ("chaos", "timed_out", "housekeeping"):
        cloud.wait_for_dag(dag)
        airflow.unpause(dag)
    airflow.start("timed_out", "late", LASTS)
    for run, conf in (("fails", FAILS), ("ends", ENDS), ("marked", LASTS)):
        airflow.start("chaos", run, conf)
    yield airflow
    airflow.close()


def jobs(cloud: Cloud, run: str) -> list[dict[str, Any]]:
    """The jobs of a run, the oldest first."""
    return sorted(cloud.jobs(run), key=lambda job: str(job["createTime"]))


def ends(cloud: Cloud, run: str) -> list[tuple[str, str]]:
    """Generation and state of each job of a run, the oldest first."""
    return [(job["labels"]["generation"], str(job["state"]).removeprefix("JOB_STATE_")) for job in jobs(cloud, run)]


def until_ended(cloud: Cloud, airflow: Airflow, dag: str, run: str) -> str:
    """Wait for a run's end, and return its state."""
    cloud.until(lambda: airflow.has_ended(dag, run), 240, lambda: cloud.states(dag, run))
    return airflow.run_state(dag, run)


def test_a_cleared_failure_is_submitted_anew_and_its_first_job_is_no_success(cloud: Cloud, airflow: Airflow) -> None:
    assert until_ended(cloud, airflow, "chaos", "fails") == "failed"
    assert ends(cloud, "fails") == [("1", "FAILED")]
    airflow.clear("chaos", "fails", "train", "wait")
    cloud.until(lambda: len(jobs(cloud, "fails")) == 2, 120, lambda: cloud.states("chaos", "fails"))
    assert until_ended(cloud, airflow, "chaos", "fails") == "failed"
    assert ends(cloud, "fails") == [("1", "FAILED"), ("2", "FAILED")]


def test_a_clear_of_the_sensor_alone_waits_again_and_one_of_the_whole_run_trains_again(
    cloud: Cloud, airflow: Airflow
) -> None:
    assert until_ended(cloud, airflow, "chaos", "ends") == "success"
    airflow.clear("chaos", "ends", "wait")
    cloud.until(lambda: cloud.tries("chaos", "ends")["wait"] == 2, 120, lambda: cloud.states("chaos", "ends"))
    assert until_ended(cloud, airflow, "chaos", "ends") == "success"
    assert ends(cloud, "ends") == [("1", "SUCCEEDED")]
    airflow.clear("chaos", "ends")
    cloud.until(lambda: len(jobs(cloud, "ends")) == 2, 120, lambda: cloud.states("chaos", "ends"))
    assert until_ended(cloud, airflow, "chaos", "ends") == "success"
    assert ends(cloud, "ends") == [("1", "SUCCEEDED"), ("2", "SUCCEEDED")]


def test_marking_the_waiting_task_success_ends_its_job(cloud: Cloud, airflow: Airflow) -> None:
    cloud.until(
        lambda: airflow.state("chaos", "marked", "wait") == "deferred", 240, lambda: cloud.states("chaos", "marked")
    )
    airflow.mark("chaos", "marked", "wait", "success")
    cloud.until(lambda: ends(cloud, "marked") == [("1", "CANCELLED")], 60, lambda: jobs(cloud, "marked"))


def test_after_a_dagrun_timeout_the_next_housekeeping_ends_the_job(cloud: Cloud, airflow: Airflow) -> None:
    assert until_ended(cloud, airflow, "timed_out", "late") == "failed"
    airflow.start("housekeeping", "after_the_timeout", {})
    assert until_ended(cloud, airflow, "housekeeping", "after_the_timeout") == "success"
    assert ends(cloud, "late") == [("1", "CANCELLED")]
