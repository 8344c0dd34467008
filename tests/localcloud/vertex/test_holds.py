"""Calls that are held until they are released: what Vertex has done meanwhile, and who is answered at last."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from tests.localcloud.vertex.conftest import wait_for

if TYPE_CHECKING:
    from tests.localcloud.vertex.conftest import StandIn

Job = Callable[..., dict[str, Any]]
PARENT = "/v1/projects/local-llm/locations/us-central1/customJobs"
CREATOR = "import httpx, sys; httpx.post(sys.argv[1], content=sys.argv[2], timeout=60)"


@pytest.fixture
def threads(vertex: StandIn) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool
        vertex.http.delete("/faults")
        vertex.http.delete("/holds")


def _held(vertex: StandIn) -> dict[str, Any]:
    held = wait_for(lambda: vertex.http.get("/holds").json(), 20)
    assert len(held) == 1
    return dict(held[0])


def _labelled(vertex: StandIn, label: str) -> list[dict[str, Any]]:
    page = vertex.http.get(PARENT, params={"filter": f"labels.hold={label}"}).json()
    return list(page.get("customJobs", []))


def test_a_create_can_be_done_and_its_true_reply_withheld(
    vertex: StandIn, container_job: Job, threads: ThreadPoolExecutor
) -> None:
    fault = vertex.fault(kind="hold", method="customJobs.create", matching='"hold": ?"after"')["id"]
    creating = threads.submit(vertex.create, container_job("pass", labels={"hold": "after"}))
    call = _held(vertex)
    since = call.pop("since")
    assert call == {"id": fault, "method": "customJobs.create", "path": PARENT, "job": None}
    entry = vertex.journal("call")[-1]
    assert (entry["method"], entry["status"], entry["held"]) == ("customJobs.create", 200, True)
    assert entry["time"] <= since
    jobs = _labelled(vertex, "after")
    assert not creating.done()
    assert vertex.http.delete(f"/holds/{fault}").json() == {"released": 1}
    assert [creating.result()] == [job["name"] for job in jobs]
    assert vertex.http.get("/holds").json() == []


def test_a_create_can_be_held_before_it_is_done(
    vertex: StandIn, container_job: Job, threads: ThreadPoolExecutor
) -> None:
    fault = vertex.fault(kind="hold", method="customJobs.create", stored=False)["id"]
    creating = threads.submit(vertex.create, container_job("pass", labels={"hold": "before"}))
    _held(vertex)
    assert _labelled(vertex, "before") == []
    vertex.http.delete(f"/holds/{fault}")
    assert [creating.result()] == [job["name"] for job in _labelled(vertex, "before")]


@pytest.mark.parametrize("stored", [True, False])
def test_a_create_whose_client_is_killed_while_it_is_held_is_done_all_the_same(
    vertex: StandIn, container_job: Job, threads: ThreadPoolExecutor, stored: bool
) -> None:
    label = f"killed-{stored}".lower()
    vertex.fault(kind="hold", method="customJobs.create", stored=stored)
    job = json.dumps(container_job("pass", labels={"hold": label}))
    with subprocess.Popen([sys.executable, "-c", CREATOR, f"{vertex.url}{PARENT}", job]) as client:
        _held(vertex)
        client.kill()
    assert len(_labelled(vertex, label)) == int(stored)
    assert vertex.http.delete("/holds").json() == {"released": 1}
    [created] = wait_for(lambda: _labelled(vertex, label), 20)
    assert vertex.wait(created["name"])["state"] == "JOB_STATE_SUCCEEDED"


def test_a_held_cancel_names_its_job(vertex: StandIn, container_job: Job, threads: ThreadPoolExecutor) -> None:
    name = vertex.create(container_job("import time; time.sleep(60)"))
    vertex.wait(name, "RUNNING")
    vertex.fault(kind="hold", method="customJobs.cancel", stored=False)
    threads.submit(vertex.post, f"/v1/{name}:cancel", {})
    assert _held(vertex)["job"] == name.rpartition("/")[2]
    assert vertex.get(name)["state"] == "JOB_STATE_RUNNING"
    vertex.http.delete("/holds")
    assert vertex.wait(name)["state"] == "JOB_STATE_CANCELLED"


def test_a_hold_ends_by_itself_and_leaves_other_calls_alone(vertex: StandIn, container_job: Job) -> None:
    vertex.fault(kind="hold", method="customJobs.list", matching="filter=labels.hold=wanted", seconds=0.2)
    assert _labelled(vertex, "other") == []
    assert "held" not in vertex.journal("call")[-1]
    assert _labelled(vertex, "wanted") == []
    assert vertex.journal("call")[-1]["held"] is True


def test_a_hold_whose_pattern_means_nothing_is_refused(vertex: StandIn) -> None:
    reply = vertex.post("/faults", {"kind": "hold", "matching": "("})
    assert reply.status_code == 400
    assert "hold.matching: Value error, not a regular expression" in reply.json()["error"]["message"]
