"""Every request on file is taken by the stand-in for Vertex AI, over its HTTP routes.

The stand-in's engine is not started, so that no job runs. It has no hyperparameterTuningJobs: of a tuning job the trial
is sent, which is a CustomJobSpec. It has no TPU machines, and says so.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.contract.requests_on_file import CUSTOM_JOBS, TUNING_JOBS, request

from localcloud.vertex.options import Options
from localcloud.vertex.server import build

PARENT = "/v1/projects/my-project/locations/us-central1/customJobs"
ON_TPUS = ["basic_tpu", "reserved_tpu_slice"]


@pytest.fixture(scope="module")
def vertex(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    """The stand-in's routes."""
    state = tmp_path_factory.mktemp("vertex")
    gate, _ = build(Options(state=state, storage_endpoint="http://127.0.0.1:1", python=Path(sys.executable)))
    return TestClient(gate)


@pytest.mark.parametrize("path", [path for path in CUSTOM_JOBS if path.stem not in ON_TPUS], ids=lambda p: p.stem)
def test_a_custom_job_is_taken(vertex: TestClient, path: Path) -> None:
    reply = vertex.post(PARENT, json=request(path))
    assert reply.status_code == 200, reply.text
    assert reply.json()["state"] == "JOB_STATE_QUEUED"
    assert reply.json()["displayName"] == request(path)["displayName"]


@pytest.mark.parametrize("path", TUNING_JOBS, ids=lambda path: path.stem)
def test_a_trial_of_a_tuning_job_is_taken_as_a_custom_job(vertex: TestClient, path: Path) -> None:
    job = request(path)
    reply = vertex.post(PARENT, json={"displayName": job["displayName"], "jobSpec": job["trialJobSpec"]})
    assert reply.status_code == 200, reply.text


@pytest.mark.parametrize("name", ON_TPUS)
def test_a_machine_that_the_stand_in_has_not_is_named(vertex: TestClient, name: str) -> None:
    (path,) = [path for path in CUSTOM_JOBS if path.stem == name]
    reply = vertex.post(PARENT, json=request(path))
    assert reply.status_code == 400
    assert "is not supported by the local stand-in" in reply.json()["error"]["message"]
