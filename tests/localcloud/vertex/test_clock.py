"""A stand-in whose clock is off tells all times of jobs and of log lines by that clock, and reckons by the true one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.localcloud.vertex.conftest import wait_for

from localcloud.vertex import clock

if TYPE_CHECKING:
    from tests.localcloud.vertex.conftest import StandIn

Job = Callable[..., dict[str, Any]]
PARENT = "/v1/projects/local-llm/locations/us-central1/customJobs"
NEAR = timedelta(seconds=60)
TIMES = ("createTime", "startTime", "endTime", "updateTime")
SKEWS = pytest.mark.parametrize("skew", [3600, -3600])


def _found(vertex: StandIn, query: str) -> list[str]:
    page = vertex.http.get(PARENT, params={"filter": query}).json()
    return [job["name"] for job in page.get("customJobs", [])]


@SKEWS
def test_the_times_of_a_job_are_off_in_every_reply(vertex: StandIn, container_job: Job, skew: int) -> None:
    told = datetime.now(UTC) + timedelta(seconds=skew)
    vertex.fault(kind="clock_skew", seconds=skew)
    created = vertex.post(PARENT, container_job("pass", labels={"clock": str(skew)})).json()
    ended = vertex.wait(created["name"])
    assert all(abs(clock.parse(ended[name]) - told) < NEAR for name in TIMES)
    assert created["createTime"] == ended["createTime"]
    page = vertex.http.get(PARENT, params={"filter": f'labels.clock="{skew}"'}).json()
    assert page["customJobs"] == [ended]
    vertex.http.delete("/faults")
    assert abs(clock.parse(vertex.get(created["name"])["createTime"]) - datetime.now(UTC)) < NEAR


@SKEWS
def test_lists_are_filtered_by_the_clock_that_is_told(vertex: StandIn, container_job: Job, skew: int) -> None:
    vertex.fault(kind="clock_skew", seconds=skew)
    name = vertex.create(container_job("pass", labels={"filtered": str(skew)}))
    told = datetime.now(UTC) + timedelta(seconds=skew)
    before, after = ((told + sign * NEAR).isoformat() for sign in (-1, 1))
    labelled = f'labels.filtered="{skew}" AND createTime'
    assert _found(vertex, f'{labelled}>"{before}"') == [name]
    assert _found(vertex, f'{labelled}>"{after}"') == []


@SKEWS
def test_log_lines_are_of_the_same_clock(vertex: StandIn, container_job: Job, skew: int) -> None:
    vertex.fault(kind="clock_skew", seconds=skew)
    name = vertex.create(container_job("print('hello')"))
    vertex.wait(name)
    told = datetime.now(UTC) + timedelta(seconds=skew)
    query = f'resource.type="ml_job" AND resource.labels.job_id="{name.rpartition("/")[2]}" AND timestamp'
    body = {"resourceNames": ["projects/local-llm"], "filter": f'{query}>="{(told - NEAR).isoformat()}"'}
    entries = wait_for(lambda: vertex.post("/v2/entries:list", body).json().get("entries"), 20)
    assert all(abs(clock.parse(entry["timestamp"]) - told) < NEAR for entry in entries)
    body["filter"] = f'{query}>="{(told + NEAR).isoformat()}"'
    assert vertex.post("/v2/entries:list", body).json() == {}


@SKEWS
def test_a_clock_that_jumps_does_not_move_a_jobs_timeout(vertex: StandIn, container_job: Job, skew: int) -> None:
    name = vertex.create(container_job("import time; time.sleep(2)", scheduling={"timeout": "600s"}))
    vertex.wait(name, "RUNNING")
    vertex.fault(kind="clock_skew", seconds=skew)
    assert vertex.wait(name)["state"] == "JOB_STATE_SUCCEEDED"


def test_the_journal_keeps_true_time(vertex: StandIn, container_job: Job) -> None:
    vertex.fault(kind="clock_skew", seconds=3600)
    name = vertex.create(container_job("pass"))
    entries = [*vertex.journal("job_state", name), vertex.journal("call")[-1]]
    assert all(abs(clock.parse(entry["time"]) - datetime.now(UTC)) < NEAR for entry in entries)


@pytest.mark.parametrize("fields", [{}, {"seconds": 1e12}, {"seconds": 5, "count": 2}])
def test_a_clock_that_is_off_by_nothing_known_is_refused(vertex: StandIn, fields: dict[str, Any]) -> None:
    assert vertex.post("/faults", {"kind": "clock_skew", **fields}).status_code == 400
