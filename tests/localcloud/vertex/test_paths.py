"""Nothing that a request names reaches a file outside the stand-in's folder."""

from __future__ import annotations

from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

import httpx
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.localcloud.vertex.conftest import StandIn

PARENT = "/v1/projects/local-llm/locations/us-central1"
OUTSIDE = ["..", "../lock", "..%2Flock", "..%2F..%2Fetc%2Fpasswd", "%2Fetc%2Fpasswd", "1%00", "*", "job.json"]


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize(
    "path", [f"{PARENT}/customJobs/", f"{PARENT}/operations/", f"{PARENT}/customJobs/1/operations/"]
)
def test_a_job_or_operation_is_a_number_of_the_stand_ins_own(vertex: StandIn, path: str, name: str) -> None:
    connection = HTTPConnection("127.0.0.1", vertex.port)  # sends the path as it is
    connection.request("GET", PARENT + path + name)
    assert connection.getresponse().status in {404, 405}
    connection.close()


@pytest.mark.parametrize("job", ["../lock", "/etc/passwd", ".."])
def test_a_fault_strikes_jobs_only(vertex: StandIn, job: str) -> None:
    assert vertex.post("/faults", {"kind": "spot_loss", "job": job}).status_code == 404


def test_the_creator_does_not_choose_where_a_job_is_kept(
    vertex: StandIn, container_job: Callable[..., dict[str, Any]]
) -> None:
    job = container_job("pass", name="projects/x/locations/y/customJobs/../../../lock", displayName="../../x")
    reply = vertex.post(f"{PARENT}/customJobs", job)
    assert reply.status_code == 400 or reply.json()["name"].rpartition("/")[2].isdecimal()


def test_a_package_is_kept_under_its_own_name_alone(vertex: StandIn, storage: str) -> None:
    query = {"uploadType": "media", "name": "../../evil.tar.gz"}  # straight to the server: the proxy would refuse it
    httpx.post(f"{storage}/upload/storage/v1/b/packages/o", params=query, content=b"x").raise_for_status()
    package = {
        "executorImageUri": "us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest",
        "packageUris": ["gs://packages/../../evil.tar.gz"], "pythonModule": "hello.task",
    }  # fmt: skip
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1, "pythonPackageSpec": package}
    name = vertex.create({"displayName": "x", "jobSpec": {"workerPoolSpecs": [pool]}})
    assert vertex.wait(name, seconds=60)["state"] == "JOB_STATE_FAILED"
    assert not [path for path in vertex.state.parent.rglob("evil.tar.gz") if path.parent.name != "packages"]
