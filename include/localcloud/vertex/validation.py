"""What Vertex refuses at creation although it is a well-formed CustomJob."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from localcloud.vertex.errors import found_errors
from localcloud.vertex.machines import machine_problem

Problem = tuple[str, str]
"""Field path in snake_case, message."""

_REQUIRED = "Required field is not set."
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL_PART = re.compile(r"[\w-]*")
_DISK_TYPES = ("pd-standard", "pd-ssd", "hyperdisk-balanced")
_FLEX_START_ACCELERATORS = (
    "NVIDIA_L4",
    "NVIDIA_TESLA_A100",
    "NVIDIA_A100_80GB",
    "NVIDIA_H100",
    "NVIDIA_H200",
    "NVIDIA_B200",
)
_WEEK = 604800.0


def check_custom_job(job: dict[str, Any]) -> None:
    """Raise ApiError 400 with every problem of a canonical CustomJob, in Vertex's wording."""
    problems = [*_job(job), *_labels(job.get("labels", {}))]
    spec = job.get("jobSpec")
    if spec is None:
        problems.append(("job_spec", _REQUIRED))
    else:
        problems += _spec(spec)
    if problems:
        raise found_errors(problems)


def seconds(duration: str) -> float:
    """Return the seconds of a JSON duration such as "3600s"."""
    return float(duration[:-1])


def _job(job: dict[str, Any]) -> Iterator[Problem]:
    name = job.get("displayName", "")
    if not name:
        yield ("display_name", _REQUIRED)
    elif len(name) > 128:
        yield ("display_name", "The display name must be at most 128 characters.")


def _labels(labels: dict[str, str]) -> Iterator[Problem]:
    if len(labels) > 64:
        yield ("labels", f"At most 64 labels are allowed, found {len(labels)}.")
    for key, value in labels.items():
        if not key or not key[0].isalpha() or not _label_part(key):
            yield ("labels", f'Label key "{key}" is invalid. {_LABEL_RULE}')
        if not _label_part(value):
            yield ("labels", f'Label value "{value}" of key "{key}" is invalid. {_LABEL_RULE}')


_LABEL_RULE = (
    "Keys start with a lowercase letter; keys and values contain only lowercase letters, digits, underscores and "
    "dashes, and have at most 63 characters."
)


def _label_part(text: str) -> bool:
    return len(text) <= 63 and text == text.lower() and _LABEL_PART.fullmatch(text) is not None


def _spec(spec: dict[str, Any]) -> Iterator[Problem]:
    pools = spec.get("workerPoolSpecs", [])
    if not pools or not pools[0]:
        yield ("job_spec.worker_pool_specs", _REQUIRED if not pools else "The first worker pool cannot be skipped.")
    if len(pools) > 4:
        yield ("job_spec.worker_pool_specs", f"At most 4 worker pools are allowed, found {len(pools)}.")
    for index, pool in enumerate(pools):
        if pool:
            yield from _pool(pool, f"job_spec.worker_pool_specs[{index}]", primary=index == 0)
    yield from _scheduling(spec.get("scheduling", {}), pools)
    output = spec.get("baseOutputDirectory")
    if output is not None and not output.get("outputUriPrefix", "").startswith("gs://"):
        yield ("job_spec.base_output_directory.output_uri_prefix", "A Cloud Storage URI (gs://...) is required.")


def _pool(pool: dict[str, Any], path: str, *, primary: bool) -> Iterator[Problem]:
    count = int(pool.get("replicaCount", "1"))
    if primary and count != 1:
        yield (f"{path}.replica_count", "The replica count of the first worker pool must be 1.")
    elif count < 1:
        yield (f"{path}.replica_count", "The replica count must be a positive number.")
    yield from _machine(pool.get("machineSpec", {}), f"{path}.machine_spec")
    yield from _disk(pool.get("diskSpec", {}), f"{path}.disk_spec")
    if "pythonPackageSpec" in pool:
        yield from _python_package(pool["pythonPackageSpec"], f"{path}.python_package_spec")
    elif "containerSpec" in pool:
        yield from _container(pool["containerSpec"], f"{path}.container_spec")
    else:
        yield (f"{path}.task", "Either `container_spec` or `python_package_spec` must be set.")


def _machine(machine: dict[str, Any], path: str) -> Iterator[Problem]:
    kind = machine.get("acceleratorType", "ACCELERATOR_TYPE_UNSPECIFIED")
    accelerator = None if kind == "ACCELERATOR_TYPE_UNSPECIFIED" else kind
    count = machine.get("acceleratorCount", 0)
    if not machine.get("machineType"):
        yield (f"{path}.machine_type", _REQUIRED)
        return
    if (accelerator is None) != (count == 0):
        both = "Both `accelerator_type` and `accelerator_count` should be specified or none. "
        yield (f"{path}.accelerator_type", both)
        return
    problem = machine_problem(machine["machineType"], accelerator, count)
    if problem:
        yield (f"{path}.{problem[0]}", problem[1])


def _disk(disk: dict[str, Any], path: str) -> Iterator[Problem]:
    kind = disk.get("bootDiskType", "pd-ssd")
    if kind not in _DISK_TYPES:
        yield (f"{path}.boot_disk_type", f'Disk type "{kind}" is not supported; supported: {", ".join(_DISK_TYPES)}.')
    size = disk.get("bootDiskSizeGb", 100)
    if not 100 <= size <= 64000:
        yield (f"{path}.boot_disk_size_gb", f"The boot disk size must be between 100 and 64000 GB, found {size}.")


def _python_package(task: dict[str, Any], path: str) -> Iterator[Problem]:
    for field, name in (("executorImageUri", "executor_image_uri"), ("pythonModule", "python_module")):
        if not task.get(field):
            yield (f"{path}.{name}", _REQUIRED)
    uris = task.get("packageUris", [])
    if not uris:
        yield (f"{path}.package_uris", _REQUIRED)
    if len(uris) > 100:
        yield (f"{path}.package_uris", f"At most 100 package URIs are allowed, found {len(uris)}.")
    for index, uri in enumerate(uris):
        if not re.fullmatch(r"gs://[^/]+/.+", uri):
            yield (f"{path}.package_uris[{index}]", f'"{uri}" is not a Cloud Storage URI (gs://bucket/object).')
    yield from _arguments_and_env(task, path)


def _container(task: dict[str, Any], path: str) -> Iterator[Problem]:
    if not task.get("imageUri"):
        yield (f"{path}.image_uri", _REQUIRED)
    yield from _arguments_and_env(task, path)


def _arguments_and_env(task: dict[str, Any], path: str) -> Iterator[Problem]:
    if sum(len(item) for item in task.get("args", [])) > 100_000:
        yield (f"{path}.args", "All arguments together must have at most 100000 characters.")
    env = task.get("env", [])
    if len(env) > 100:
        yield (f"{path}.env", f"At most 100 environment variables are allowed, found {len(env)}.")
    names = [item.get("name", "") for item in env]
    for index, name in enumerate(names):
        if not _IDENTIFIER.fullmatch(name):
            yield (f"{path}.env[{index}].name", f'"{name}" is not a valid C identifier.')
        elif name in names[:index]:
            yield (f"{path}.env[{index}].name", f'The environment variable name "{name}" is not unique.')


def _scheduling(scheduling: dict[str, Any], pools: list[dict[str, Any]]) -> Iterator[Problem]:
    timeout = seconds(scheduling.get("timeout", "604800s"))
    flex_start = scheduling.get("strategy") == "FLEX_START"
    if timeout <= 0:
        yield ("job_spec.scheduling.timeout", "The timeout must be positive.")
    if "maxWaitDuration" in scheduling and not flex_start:
        yield ("job_spec.scheduling.max_wait_duration", "This field is only supported with strategy FLEX_START.")
    if not flex_start:
        return
    if timeout > _WEEK:
        yield ("job_spec.scheduling.timeout", "The timeout must be at most 604800s with strategy FLEX_START.")
    machines = [pool.get("machineSpec", {}) for pool in pools if pool]
    if any(machine != machines[0] for machine in machines):
        yield ("job_spec.worker_pool_specs", "FLEX_START requires the same machine spec in all worker pools.")
    if any(not machine.get("acceleratorType", "").startswith(_FLEX_START_ACCELERATORS) for machine in machines):
        yield ("job_spec.scheduling.strategy", "FLEX_START requires L4, A100, H100, H200 or B200 GPUs.")
