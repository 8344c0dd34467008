from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from localcloud.vertex.errors import ApiError
from localcloud.vertex.validation import check_custom_job

GOOD: dict[str, Any] = {
    "displayName": "good",
    "labels": {"key": "value_1-2"},
    "jobSpec": {
        "workerPoolSpecs": [
            {
                "machineSpec": {
                    "machineType": "n1-standard-4",
                    "acceleratorType": "NVIDIA_TESLA_T4",
                    "acceleratorCount": 2,
                },
                "replicaCount": "1",
                "diskSpec": {"bootDiskType": "pd-standard", "bootDiskSizeGb": 200},
                "pythonPackageSpec": {
                    "executorImageUri": "image",
                    "packageUris": ["gs://b/p.whl"],
                    "pythonModule": "m",
                    "env": [{"name": "A", "value": "1"}],
                },
            },
            {},
            {
                "machineSpec": {"machineType": "e2-standard-4"},
                "replicaCount": "3",
                "containerSpec": {"imageUri": "image"},
            },
        ],
        "scheduling": {"timeout": "60s"},
    },
}


def _pool(job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = job["jobSpec"]["workerPoolSpecs"][0]
    return found


def _set(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(job: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        target: Any = _pool(job) if parents[:1] == ["pool"] else job
        for key in parents[1:] if parents[:1] == ["pool"] else parents:
            target = target[key]
        if value is None:
            del target[last]
        else:
            target[last] = value

    return change


def test_a_good_job_is_accepted() -> None:
    check_custom_job(GOOD)


@pytest.mark.parametrize(
    ("change", "field", "text"),
    [
        (_set("displayName", "x" * 129), "display_name", "128"),
        (_set("jobSpec", None), "job_spec", "Required field is not set."),
        (_set("jobSpec.workerPoolSpecs", []), "job_spec.worker_pool_specs", "Required field is not set."),
        (_set("jobSpec.workerPoolSpecs", [{}]), "job_spec.worker_pool_specs", "cannot be skipped"),
        (_set("pool.replicaCount", "2"), "job_spec.worker_pool_specs[0].replica_count", "must be 1"),
        (_set("pool.machineSpec.machineType", None), "machine_spec.machine_type", "Required field is not set."),
        (_set("pool.machineSpec.machineType", "n1-standard-2"), "machine_spec.machine_type", "not supported"),
        (_set("pool.machineSpec.machineType", "ct5lp-hightpu-1t"), "machine_spec.machine_type", "TPU"),
        (_set("pool.machineSpec.machineType", "e2-standard-4"), "accelerator_type", 'for machine type "e2-standard-4"'),
        (_set("pool.machineSpec.acceleratorCount", None), "accelerator_type", "should be specified or none"),
        (_set("pool.machineSpec.acceleratorCount", 3), "accelerator_count", "supported counts: 1, 2, 4"),
        (
            _set("pool.machineSpec.acceleratorType", "NVIDIA_TESLA_K80"),
            "accelerator_type",
            'Accelerator "NVIDIA_TESLA_K80" is not supported for machine type "n1-standard-4"',
        ),
        (_set("pool.machineSpec", {"machineType": "g2-standard-4"}), "accelerator_type", "requires accelerators"),
        (_set("pool.diskSpec.bootDiskType", "ssd"), "disk_spec.boot_disk_type", "not supported"),
        (_set("pool.diskSpec.bootDiskSizeGb", 10), "disk_spec.boot_disk_size_gb", "between 100 and 64000"),
        (_set("pool.pythonPackageSpec", None), "worker_pool_specs[0].task", "must be set"),
        (_set("pool.pythonPackageSpec.pythonModule", None), "python_module", "Required field is not set."),
        (_set("pool.pythonPackageSpec.executorImageUri", None), "executor_image_uri", "Required field is not set."),
        (_set("pool.pythonPackageSpec.packageUris", []), "package_uris", "Required field is not set."),
        (_set("pool.pythonPackageSpec.packageUris", ["gs://b/p"] * 101), "package_uris", "At most 100"),
        (_set("pool.pythonPackageSpec.packageUris", ["/p.whl"]), "package_uris[0]", "not a Cloud Storage URI"),
        (_set("pool.pythonPackageSpec.args", ["x" * 100_001]), "args", "100000"),
        (_set("pool.pythonPackageSpec.env", [{"name": "a-b"}]), "env[0].name", "C identifier"),
        (_set("pool.pythonPackageSpec.env", [{"name": "A"}, {"name": "A"}]), "env[1].name", "not unique"),
        (_set("labels", {"Key": "v"}), "labels", "invalid"),
        (_set("labels", {"1": "v"}), "labels", "invalid"),
        (_set("labels", {"k": "a b"}), "labels", "invalid"),
        (_set("labels", {"k": "v" * 64}), "labels", "invalid"),
        (_set("labels", {f"k{n}": "v" for n in range(65)}), "labels", "At most 64"),
        (_set("jobSpec.scheduling.timeout", "0s"), "scheduling.timeout", "positive"),
        (_set("jobSpec.scheduling", {"maxWaitDuration": "1s"}), "max_wait_duration", "FLEX_START"),
        (_set("jobSpec.scheduling", {"strategy": "FLEX_START"}), "scheduling.strategy", "requires L4"),
        (_set("jobSpec.baseOutputDirectory", {}), "base_output_directory.output_uri_prefix", "required"),
    ],
)
def test_what_vertex_refuses_is_refused(change: Callable[[dict[str, Any]], None], field: str, text: str) -> None:
    job = copy.deepcopy(GOOD)
    change(job)
    with pytest.raises(ApiError) as caught:
        check_custom_job(job)
    assert caught.value.status == 400
    assert caught.value.message.startswith("List of found errors:\t1.Field: ")
    assert field in caught.value.message
    assert text in caught.value.message


def test_more_than_four_pools_are_refused() -> None:
    job = copy.deepcopy(GOOD)
    job["jobSpec"]["workerPoolSpecs"] += [job["jobSpec"]["workerPoolSpecs"][2]] * 2
    with pytest.raises(ApiError, match="At most 4 worker pools"):
        check_custom_job(job)
