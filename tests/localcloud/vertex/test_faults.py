from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import localcloud.vertex
from localcloud.vertex.methods import METHODS

if TYPE_CHECKING:
    from tests.localcloud.vertex.conftest import StandIn

Job = Callable[..., dict[str, Any]]
PARENT = "/v1/projects/local-llm/locations/us-central1/customJobs"
STOCKOUT = "Resources are insufficient in region: us-central1. Try a different region or use a different accelerator."


def test_a_dropped_reply_leaves_the_job_stored(vertex: StandIn, container_job: Job) -> None:
    vertex.fault(kind="drop_reply", method="customJobs.create")
    job = container_job("pass", labels={"dropped": "yes"})
    with pytest.raises(httpx.RemoteProtocolError):
        vertex.post(PARENT, job)
    found = vertex.http.get(PARENT, params={"filter": "labels.dropped=yes"}).json()["customJobs"]
    assert len(found) == 1
    calls = [call for call in vertex.journal("call") if call["reply"] == "dropped"]
    assert calls[-1]["method"] == "customJobs.create"
    assert calls[-1]["status"] == 200


def test_a_stored_create_can_be_answered_503(vertex: StandIn, container_job: Job) -> None:
    vertex.fault(kind="drop_reply", method="customJobs.create", status=503)
    reply = vertex.post(PARENT, container_job("pass", labels={"answered": "503"}))
    assert reply.json()["error"]["status"] == "UNAVAILABLE"
    found = vertex.http.get(PARENT, params={"filter": 'labels.answered="503"'}).json()["customJobs"]
    assert len(found) == 1


def test_calls_are_answered_with_a_status_as_often_as_asked(vertex: StandIn, container_job: Job) -> None:
    name = vertex.create(container_job("pass"))
    vertex.fault(kind="answer", method="customJobs.get", status=429, count=2, retry_after=7)
    replies = [vertex.http.get(f"/v1/{name}") for _ in range(3)]
    assert [reply.status_code for reply in replies] == [429, 429, 200]
    assert replies[0].headers["retry-after"] == "7"
    assert replies[0].json()["error"]["status"] == "RESOURCE_EXHAUSTED"


def test_calls_can_be_slow(vertex: StandIn) -> None:
    vertex.fault(kind="delay", method="customJobs.list", seconds=0.4)
    began = time.monotonic()
    assert vertex.http.get(PARENT).status_code == 200
    assert time.monotonic() - began >= 0.4


def test_a_stockout_fails_the_job_after_its_restarts(vertex: StandIn, container_job: Job) -> None:
    vertex.fault(kind="stockout", region="us-central1")
    job = vertex.wait(vertex.create(container_job("pass")))
    assert job["state"] == "JOB_STATE_FAILED"
    assert job["error"] == {"code": 8, "message": STOCKOUT}
    assert "startTime" not in job


def test_a_stockout_that_passes_lets_the_job_run(vertex: StandIn, container_job: Job) -> None:
    vertex.fault(kind="stockout", count=2)
    assert vertex.wait(vertex.create(container_job("pass")))["state"] == "JOB_STATE_SUCCEEDED"


def test_a_stockout_of_another_accelerator_does_not_matter(vertex: StandIn, container_job: Job) -> None:
    vertex.fault(kind="stockout", accelerator="NVIDIA_L4")
    assert vertex.wait(vertex.create(container_job("pass")))["state"] == "JOB_STATE_SUCCEEDED"


def test_a_spot_loss_restarts_the_job(vertex: StandIn, container_job: Job, tmp_path: Any) -> None:
    marker = tmp_path / "starts"
    count = f"f = open({str(marker)!r}, 'a+'); f.write('x'); f.seek(0); starts = len(f.read())"
    code = f"import time; {count}; f.close(); time.sleep(0 if starts > 1 else 60)"
    name = vertex.create(container_job(code))
    vertex.wait(name, "RUNNING")
    while not marker.exists():
        time.sleep(0.05)
    assert vertex.fault(kind="spot_loss", job=name) == {"struck": True}
    assert vertex.wait(name)["state"] == "JOB_STATE_SUCCEEDED"
    assert vertex.states(name) == ["QUEUED", "PENDING", "RUNNING", "PENDING", "RUNNING", "SUCCEEDED"]


def test_the_last_spot_loss_fails_the_job(vertex: StandIn, container_job: Job) -> None:
    name = vertex.create(container_job("import time; time.sleep(60)", "import time; time.sleep(60)"))
    vertex.wait(name, "RUNNING")
    vertex.fault(kind="spot_loss", job=name, final=True)
    job = vertex.wait(name)
    assert job["state"] == "JOB_STATE_FAILED"
    assert job["error"] == {"code": 8, "message": STOCKOUT}
    assert {entry["exit_code"] for entry in vertex.journal("replica_ended", name)} == {-9}


def test_one_replica_can_be_killed(vertex: StandIn, container_job: Job) -> None:
    name = vertex.create(container_job("import time; time.sleep(60)", "import time; print('up'); time.sleep(60)"))
    vertex.wait(name, "RUNNING")
    assert vertex.fault(kind="kill_replica", job=name, replica="workerpool1-0") == {"struck": True}
    assert "The replica workerpool1-0 ran out of memory" in vertex.wait(name)["error"]["message"]


def test_a_slow_cancel_takes_its_time(vertex: StandIn, container_job: Job) -> None:
    name = vertex.create(container_job("import time; time.sleep(60)"))
    vertex.wait(name, "RUNNING")
    vertex.fault(kind="slow_cancel", seconds=1)
    began = time.monotonic()
    vertex.post(f"/v1/{name}:cancel", {})
    assert vertex.wait(name)["state"] == "JOB_STATE_CANCELLED"
    assert time.monotonic() - began >= 1


def test_a_job_that_finishes_during_a_slow_cancel_has_succeeded(vertex: StandIn, container_job: Job) -> None:
    name = vertex.create(container_job("import time; time.sleep(1)"))
    vertex.wait(name, "RUNNING")
    vertex.fault(kind="slow_cancel", seconds=10)
    vertex.post(f"/v1/{name}:cancel", {})
    assert vertex.wait(name)["state"] == "JOB_STATE_SUCCEEDED"


def test_faults_are_shown_and_removed(vertex: StandIn) -> None:
    first = vertex.fault(kind="answer", status=500, method="customJobs.list")["id"]
    vertex.fault(kind="slow_cancel", seconds=3)
    assert [fault["kind"] for fault in vertex.http.get("/faults").json()["faults"]] == ["answer", "slow_cancel"]
    assert vertex.http.delete(f"/faults/{first}").json() == {"removed": 1}
    assert vertex.http.delete("/faults").json() == {"removed": 1}
    assert vertex.http.get(PARENT).status_code == 200


@pytest.mark.parametrize("kind", ["answer", "drop_reply", "delay"])
@pytest.mark.parametrize("method", ["customJobs.post", "create", "CustomJobs.create", "unknown", ""])
def test_a_fault_of_a_method_that_there_is_not_is_refused(vertex: StandIn, kind: str, method: str) -> None:
    fault = {"kind": kind, "method": method, **{"answer": {"status": 503}, "delay": {"seconds": 1}}.get(kind, {})}
    reply = vertex.post("/faults", fault)
    assert reply.status_code == 400
    message = reply.json()["error"]["message"]
    assert f"{kind}.method" in message
    assert f"{method!r} is unknown; allowed: *, {', '.join(METHODS)}" in message
    assert vertex.http.get("/faults").json() == {"faults": []}


@pytest.mark.parametrize("method", ["*", *METHODS])
def test_every_method_can_have_a_fault(vertex: StandIn, method: str) -> None:
    assert "id" in vertex.fault(kind="delay", method=method, seconds=0.1)


def test_the_page_of_the_stand_in_names_every_method() -> None:
    page = (Path(localcloud.vertex.__file__).parent / "README.md").read_text()
    named = re.search(r"Methods: (.*?), or `\*`", page, re.DOTALL)
    assert named is not None
    assert set(re.findall(r"`([^`]+)`", named[1])) == set(METHODS)


def test_a_stockout_of_an_accelerator_that_there_is_not_is_refused(vertex: StandIn) -> None:
    reply = vertex.post("/faults", {"kind": "stockout", "accelerator": "NVIDIA_T4"})
    assert reply.status_code == 400
    assert "'NVIDIA_T4' is unknown; allowed: *, NVIDIA_TESLA_K80" in reply.json()["error"]["message"]


def test_what_is_no_fault_is_refused(vertex: StandIn) -> None:
    assert vertex.post("/faults", {"kind": "flood"}).status_code == 400
    assert vertex.post("/faults", {"kind": "spot_loss", "job": "1"}).status_code == 404
