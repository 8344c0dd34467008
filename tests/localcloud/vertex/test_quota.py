from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.localcloud.vertex.conftest import StandIn

Job = Callable[..., dict[str, Any]]


def _with_gpus(job: dict[str, Any], count: int) -> dict[str, Any]:
    machine = {"machineType": "n1-standard-4", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": count}
    job["jobSpec"]["workerPoolSpecs"][0]["machineSpec"] = machine
    return job


def test_a_job_over_quota_waits_in_the_queue(own: Callable[..., StandIn], container_job: Job, tmp_path: Path) -> None:
    quotas = tmp_path / "quotas.json"
    quotas.write_text(json.dumps({"us-central1": {"NVIDIA_TESLA_T4": {"standard": 4, "preemptible": 0}}}))
    vertex = own("--quota-file", str(quotas))
    holds = vertex.create(_with_gpus(container_job("import time; time.sleep(60)"), 2))
    vertex.wait(holds, "RUNNING")
    waits = vertex.create(_with_gpus(container_job("pass"), 4))
    fits = vertex.create(_with_gpus(container_job("pass"), 2))
    spot = vertex.create(_with_gpus(container_job("pass", scheduling={"strategy": "SPOT"}), 1))
    assert vertex.wait(fits)["state"] == "JOB_STATE_SUCCEEDED"
    assert vertex.get(waits)["state"] == "JOB_STATE_QUEUED"
    held = [{"region": "us-central1", "accelerator": "NVIDIA_TESLA_T4", "model": "standard", "limit": 4, "used": 2}]
    assert vertex.http.get("/quotas").json()["usage"] == held
    vertex.post(f"/v1/{holds}:cancel", {})
    assert vertex.wait(waits)["state"] == "JOB_STATE_SUCCEEDED"
    assert vertex.get(waits)["startTime"] >= vertex.get(holds)["endTime"]
    assert vertex.get(spot)["state"] == "JOB_STATE_QUEUED"
    quotas.write_text(json.dumps({"*": {"NVIDIA_TESLA_T4": 1}}))
    assert vertex.wait(spot)["state"] == "JOB_STATE_SUCCEEDED"


def test_a_queued_job_is_cancelled_at_once(own: Callable[..., StandIn], container_job: Job, tmp_path: Path) -> None:
    quotas = tmp_path / "quotas.json"
    quotas.write_text(json.dumps({"*": {"NVIDIA_TESLA_T4": 0}}))
    vertex = own("--quota-file", str(quotas))
    name = vertex.create(_with_gpus(container_job("pass"), 1))
    vertex.post(f"/v1/{name}:cancel", {})
    job = vertex.get(name)
    assert job["state"] == "JOB_STATE_CANCELLED"
    assert "startTime" not in job
