from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.localcloud.vertex.conftest import StandIn

Job = Callable[..., dict[str, Any]]


def _entries(vertex: StandIn, **body: Any) -> list[dict[str, Any]]:
    reply = vertex.post("/v2/entries:list", {"resourceNames": ["projects/local-llm"], **body})
    assert reply.status_code == 200, reply.text
    found: list[dict[str, Any]] = reply.json().get("entries", [])
    return found


def test_lines_have_the_shape_of_cloud_logging(vertex: StandIn, container_job: Job) -> None:
    code = """import sys
print("one")
print("two", file=sys.stderr)
print('{"message": "three", "severity": "WARNING", "step": 3}')"""
    name = vertex.create(container_job(code))
    vertex.wait(name)
    number = name.rpartition("/")[2]
    lines = _entries(vertex, filter=f'resource.labels.job_id="{number}" AND resource.labels.task_name="workerpool0-0"')
    by_text = {entry.get("textPayload") or entry["jsonPayload"]["message"]: entry for entry in lines}
    assert set(by_text) == {"one", "two", "three"}
    labels = {"job_id": number, "project_id": "local-llm", "task_name": "workerpool0-0"}
    assert by_text["one"]["resource"] == {"type": "ml_job", "labels": labels}
    assert by_text["one"]["severity"] == "INFO"
    assert by_text["two"]["severity"] == "ERROR"
    assert by_text["three"]["severity"] == "WARNING"
    assert by_text["three"]["jsonPayload"] == {"message": "three", "step": 3}
    assert len({entry["insertId"] for entry in lines}) == 3
    severe = _entries(vertex, filter=f'resource.labels.job_id="{number}" severity>=ERROR')
    assert [entry["textPayload"] for entry in severe] == ["two"]


def test_lines_are_served_while_the_replica_runs(vertex: StandIn, container_job: Job) -> None:
    name = vertex.create(container_job("import time; print('early'); time.sleep(60)"))
    vertex.wait(name, "RUNNING")
    deadline = time.monotonic() + 120
    while vertex.lines(name) != ["early"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    vertex.post(f"/v1/{name}:cancel", {})
    vertex.wait(name)


def test_several_jobs_are_read_in_pages_and_from_a_time_on(vertex: StandIn, container_job: Job) -> None:
    names = [
        vertex.create(container_job("import time\nfor n in range(4): print(n); time.sleep(0.01)")) for _ in range(2)
    ]
    numbers = [name.rpartition("/")[2] for name in names]
    for name in names:
        vertex.wait(name)
    either = " OR ".join(f'resource.labels.job_id="{number}"' for number in numbers)
    wanted = f'resource.type="ml_job" AND ({either}) AND resource.labels.task_name="workerpool0-0"'
    found: list[dict[str, Any]] = []
    body: dict[str, Any] = {"filter": wanted, "orderBy": "timestamp asc", "pageSize": 3}
    while True:
        page = vertex.post("/v2/entries:list", body).json()
        found += page["entries"]
        if "nextPageToken" not in page:
            break
        body["pageToken"] = page["nextPageToken"]
    assert len(found) == len({entry["insertId"] for entry in found}) == 8
    times = [entry["timestamp"] for entry in found]
    assert times == sorted(times)
    assert {entry["resource"]["labels"]["job_id"] for entry in found} == set(numbers)
    later = _entries(vertex, filter=f'{wanted} AND timestamp > "{times[4]}"')
    assert [entry["insertId"] for entry in later] == [e["insertId"] for e in found if e["timestamp"] > times[4]]
    group = _entries(
        vertex, filter=f'resource.labels.job_id=("{numbers[0]}" OR "{numbers[1]}") timestamp>="{times[0]}"'
    )
    assert len(group) >= 8
    newest = _entries(vertex, filter=wanted, orderBy="timestamp desc", pageSize=1)
    assert newest[0]["timestamp"] == times[-1]


def test_other_projects_see_nothing(vertex: StandIn, container_job: Job) -> None:
    name = vertex.create(container_job("print('mine')"))
    vertex.wait(name)
    wanted = f'resource.labels.job_id="{name.rpartition("/")[2]}"'
    assert _entries(vertex, filter=wanted, resourceNames=["projects/other"]) == []
    assert _entries(vertex, filter=wanted, resourceNames=["projects/100000000001"]) != []


@pytest.mark.parametrize("body", [{"filter": "resource.type=("}, {"orderBy": "colour"}, {"pageSize": "x"}])
def test_a_query_that_cannot_be_read_is_400(vertex: StandIn, body: dict[str, str]) -> None:
    reply = vertex.post("/v2/entries:list", body)
    assert reply.json()["error"]["status"] == "INVALID_ARGUMENT"
