from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.localcloud.vertex.conftest import StandIn

Job = Callable[..., dict[str, Any]]
PARENT = "/v1/projects/local-llm/locations/us-central1/customJobs"


def _error(reply: Any) -> dict[str, Any]:
    error: dict[str, Any] = reply.json()["error"]
    assert error["code"] == reply.status_code
    return error


def test_a_created_job_is_answered_whole(vertex: StandIn, container_job: Job) -> None:
    sent = container_job("pass", labels={"a": "b"})
    reply = vertex.post(PARENT, {**sent, "state": "JOB_STATE_SUCCEEDED", "name": "mine"}).json()
    head, _, number = reply["name"].rpartition("/")
    assert head == "projects/100000000001/locations/us-central1/customJobs"
    assert len(number) == 19
    assert number.isdecimal()
    assert reply["state"] == "JOB_STATE_QUEUED"
    assert reply["labels"] == {"a": "b"}
    assert reply["jobSpec"]["workerPoolSpecs"][0]["replicaCount"] == "1"
    by_id = vertex.http.get(f"{PARENT}/{number}").json()
    assert by_id["name"] == reply["name"]


def test_enums_are_numbers_when_googles_client_asks(vertex: StandIn, container_job: Job) -> None:
    sent = container_job("pass", scheduling={"strategy": 4})
    machine = {"machineType": "n1-standard-4", "acceleratorType": 5, "acceleratorCount": 1}
    sent["jobSpec"]["workerPoolSpecs"][0]["machineSpec"] = machine
    name = vertex.create(sent)
    query = {"$alt": "json;enum-encoding=int"}
    numbers = vertex.http.get(f"/v1/{name}", params=query).json()
    assert numbers["jobSpec"]["scheduling"]["strategy"] == 4
    assert numbers["jobSpec"]["workerPoolSpecs"][0]["machineSpec"]["acceleratorType"] == 5
    assert isinstance(numbers["state"], int)
    names = vertex.get(name)
    assert names["jobSpec"]["workerPoolSpecs"][0]["machineSpec"]["acceleratorType"] == "NVIDIA_TESLA_T4"


def test_an_unknown_field_is_refused_as_google_words_it(vertex: StandIn, container_job: Job) -> None:
    sent = container_job("pass")
    sent["jobSpec"]["workerPoolSpecs"][0]["machineSpec"]["gpus"] = 1
    error = _error(vertex.post(PARENT, sent))
    where = "custom_job.job_spec.worker_pool_specs[0].machine_spec"
    text = f"Invalid JSON payload received. Unknown name \"gpus\" at '{where}': Cannot find field."
    assert error["message"] == text
    assert error["status"] == "INVALID_ARGUMENT"
    assert error["details"][0]["fieldViolations"] == [{"field": where, "description": text}]


def test_what_vertex_refuses_is_refused_in_its_words(vertex: StandIn, container_job: Job) -> None:
    sent = container_job("pass", displayName="")
    sent["jobSpec"]["workerPoolSpecs"][0]["machineSpec"]["acceleratorType"] = "NVIDIA_TESLA_T4"
    error = _error(vertex.post(PARENT, sent))
    both = "Both `accelerator_type` and `accelerator_count` should be specified or none. "
    where = "job_spec.worker_pool_specs[0].machine_spec.accelerator_type"
    first = "1.Field: display_name; Message: Required field is not set."
    assert error["message"] == f"List of found errors:\t{first}\t2.Field: {where}; Message: {both}\t"


def test_what_does_not_exist_is_404(vertex: StandIn) -> None:
    for reply in (
        vertex.http.get(f"{PARENT}/1234567890123456789"),
        vertex.post(f"{PARENT}/1234567890123456789:cancel", {}),
        vertex.http.delete(f"{PARENT}/1234567890123456789"),
        vertex.http.get("/v1/nothing"),
    ):
        assert _error(reply)["status"] == "NOT_FOUND"


def test_a_job_is_found_in_its_own_region_only(vertex: StandIn, container_job: Job) -> None:
    name = vertex.create(container_job("pass"))
    assert vertex.http.get(f"/v1/{name.replace('us-central1', 'europe-west4')}").status_code == 404


def test_a_body_that_is_no_json_is_400(vertex: StandIn) -> None:
    reply = vertex.http.post(PARENT, content=b"{")
    assert _error(reply)["message"].startswith("Invalid JSON payload received.")


def test_lists_are_filtered_and_paged_newest_first(vertex: StandIn, container_job: Job) -> None:
    names = [vertex.create(container_job("pass", labels={"batch": "paged", "n": str(n)})) for n in range(5)]
    other = vertex.create(container_job("pass", displayName="other"))
    found: list[str] = []
    query = {"filter": "labels.batch=paged", "pageSize": "2"}
    pages = 0
    while True:
        page = vertex.http.get(PARENT, params=query).json()
        found += [job["name"] for job in page["customJobs"]]
        pages += 1
        if "nextPageToken" not in page:
            break
        query["pageToken"] = page["nextPageToken"]
    assert found == names[::-1]
    assert pages == 3
    some = vertex.http.get(PARENT, params={"filter": 'labels.n:* AND (labels.n="1" OR labels.n="3")'}).json()
    assert [job["name"] for job in some["customJobs"]] == [names[3], names[1]]
    assert [
        job["name"] for job in vertex.http.get(PARENT, params={"filter": "displayName=other"}).json()["customJobs"]
    ] == [other]


@pytest.mark.parametrize(
    "query", [{"filter": "colour=red"}, {"filter": "state="}, {"pageSize": "x"}, {"pageToken": "?"}]
)
def test_a_list_that_cannot_be_read_is_400(vertex: StandIn, query: dict[str, str]) -> None:
    assert _error(vertex.http.get(PARENT, params=query))["status"] == "INVALID_ARGUMENT"


def test_a_job_is_deleted_only_after_its_end(vertex: StandIn, container_job: Job) -> None:
    name = vertex.create(container_job("import time; print('said'); time.sleep(60)"))
    vertex.wait(name, "RUNNING")
    while not vertex.lines(name):
        time.sleep(0.05)
    assert _error(vertex.http.delete(f"/v1/{name}"))["status"] == "FAILED_PRECONDITION"
    vertex.post(f"/v1/{name}:cancel", {})
    vertex.wait(name, "CANCELLED")
    operation = vertex.http.delete(f"/v1/{name}").json()
    assert operation["done"]
    assert vertex.http.get(f"/v1/{operation['name']}").json() == operation
    assert vertex.http.get(f"/v1/{name}").status_code == 404
    assert vertex.lines(name) == ["said"]


def test_every_call_is_in_the_journal(vertex: StandIn, container_job: Job) -> None:
    name = vertex.create(container_job("pass"))
    vertex.get(name)
    vertex.http.get(f"{PARENT}/1234567890123456789", headers={"User-Agent": "me"})
    calls = vertex.journal("call")
    assert [(call["method"], call["status"]) for call in calls[-3:]] == [
        ("customJobs.create", 200),
        ("customJobs.get", 200),
        ("customJobs.get", 404),
    ]
    assert calls[-1]["agent"] == "me"
    assert calls[-1]["job"] == "1234567890123456789"


def test_a_token_is_granted_to_everybody_and_recorded(vertex: StandIn) -> None:
    reply = vertex.http.post("/token", data={"grant_type": "refresh_token"})
    assert reply.json()["token_type"] == "Bearer"
    assert vertex.journal("token_request")[-1]["grant"] == "refresh_token"
