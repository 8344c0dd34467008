from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from tests.localcloud.vertex.rules.changes import DISK, GONE, GOOD, L4, SCHEDULING, changed, cpu, flex, gpu

from localcloud.vertex.defaults import with_defaults

if TYPE_CHECKING:
    from tests.localcloud.vertex.conftest import StandIn


def _stored(change: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = with_defaults(changed(change))["jobSpec"]
    return spec


@pytest.mark.parametrize(
    ("change", "disk"),
    [
        (cpu("n1-standard-4", {}), {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100}),
        ({DISK: GONE}, {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100}),
        (cpu("e2-standard-4", {"bootDiskSizeGb": 300}), {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 300}),
        (gpu(*L4), {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100}),
        (gpu("a3-ultragpu-8g", "NVIDIA_H200_141GB", 8), {"bootDiskType": "hyperdisk-balanced", "bootDiskSizeGb": 100}),
        (gpu("a4-highgpu-8g", "NVIDIA_B200", 8), {"bootDiskType": "hyperdisk-balanced", "bootDiskSizeGb": 100}),
        ({}, {"bootDiskType": "pd-standard", "bootDiskSizeGb": 200}),
    ],
)
def test_a_pool_gets_its_boot_disk(change: dict[str, Any], disk: dict[str, Any]) -> None:
    assert _stored(change)["workerPoolSpecs"][0]["diskSpec"] == disk


def test_a_skipped_pool_stays_empty() -> None:
    assert _stored({})["workerPoolSpecs"][1] == {}


@pytest.mark.parametrize(
    ("change", "scheduling"),
    [
        ({SCHEDULING: GONE}, {"timeout": "604800s"}),
        ({SCHEDULING: {"timeout": "60s"}}, {"timeout": "60s"}),
        ({SCHEDULING: {"strategy": "STRATEGY_UNSPECIFIED"}}, {"timeout": "604800s", "strategy": "STANDARD"}),
        (flex(*L4), {"timeout": "604800s", "strategy": "FLEX_START", "maxWaitDuration": "86400s"}),
        (
            flex(*L4, maxWaitDuration="0s", timeout="1s"),
            {"timeout": "1s", "strategy": "FLEX_START", "maxWaitDuration": "0s"},
        ),
    ],
)
def test_a_job_gets_the_times_that_it_left_out(change: dict[str, Any], scheduling: dict[str, Any]) -> None:
    assert _stored(change)["scheduling"] == scheduling


@pytest.mark.parametrize(("disabled", "restarts"), [(True, False), (False, True)])
def test_a_job_without_retries_is_not_restarted_with_its_workers(disabled: bool, restarts: bool) -> None:
    scheduling = {"disableRetries": disabled, "restartJobOnWorkerRestart": True}
    assert _stored({SCHEDULING: scheduling})["scheduling"]["restartJobOnWorkerRestart"] is restarts


@pytest.mark.parametrize("prefix", ["gs://my-bucket/out", "gs://my-bucket/out/"])
def test_the_output_folder_ends_with_a_slash(prefix: str) -> None:
    stored = _stored({"jobSpec.baseOutputDirectory": {"outputUriPrefix": prefix}})
    assert stored["baseOutputDirectory"] == {"outputUriPrefix": "gs://my-bucket/out/"}


def test_the_job_that_was_sent_is_left_as_it_is() -> None:
    job = changed({})
    with_defaults(job)
    assert job == copy.deepcopy(GOOD)


def test_the_reply_to_a_creation_holds_the_defaults(vertex: StandIn, container_job: Callable[..., Any]) -> None:
    parent = "/v1/projects/local-llm/locations/us-central1/customJobs"
    spec = vertex.post(parent, container_job("pass")).json()["jobSpec"]
    assert spec["scheduling"] == {"timeout": "604800s"}
    assert spec["workerPoolSpecs"][0]["diskSpec"] == {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100}
