"""What Vertex refuses at creation although it is a well-formed CustomJob."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from localcloud.vertex.errors import found_errors
from localcloud.vertex.executor_images import executor_image_problems
from localcloud.vertex.job_rules import job_problems, spec_problems
from localcloud.vertex.label_rules import label_problems
from localcloud.vertex.machine_rules import disk_problems, machine_problems
from localcloud.vertex.problems import REQUIRED, Problem
from localcloud.vertex.scheduling_rules import scheduling_problems

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PACKAGE = re.compile(r"gs://[^/]+/.+\.(?:tar\.gz|whl)", re.DOTALL)


def check_custom_job(job: dict[str, Any]) -> None:
    """Raise ApiError 400 with every problem of a canonical CustomJob, in Vertex's wording."""
    problems = [*job_problems(job), *label_problems(job.get("labels", {}))]
    spec = job.get("jobSpec")
    if spec is None:
        problems.append(("job_spec", REQUIRED))
    else:
        problems += _spec(spec)
    if problems:
        raise found_errors(problems)


def _spec(spec: dict[str, Any]) -> Iterator[Problem]:
    pools = spec.get("workerPoolSpecs", [])
    if not pools or not pools[0]:
        yield ("job_spec.worker_pool_specs", REQUIRED if not pools else "The first worker pool cannot be skipped.")
    if len(pools) > 4:
        yield ("job_spec.worker_pool_specs", f"At most 4 worker pools are allowed, found {len(pools)}.")
    for index, pool in enumerate(pools):
        if pool:
            yield from _pool(pool, f"job_spec.worker_pool_specs[{index}]", primary=index == 0)
    yield from scheduling_problems(spec.get("scheduling", {}), pools)
    yield from spec_problems(spec)


def _pool(pool: dict[str, Any], path: str, *, primary: bool) -> Iterator[Problem]:
    count = int(pool.get("replicaCount", "1"))
    if primary and count != 1:
        yield (f"{path}.replica_count", "The replica count of the first worker pool must be 1.")
    elif count < 1:
        yield (f"{path}.replica_count", "The replica count must be a positive number.")
    machine = pool.get("machineSpec", {})
    yield from machine_problems(machine, f"{path}.machine_spec")
    yield from disk_problems(pool.get("diskSpec", {}), machine.get("machineType", ""), f"{path}.disk_spec")
    if "pythonPackageSpec" in pool:
        yield from _python_package(pool["pythonPackageSpec"], f"{path}.python_package_spec")
    elif "containerSpec" in pool:
        yield from _container(pool["containerSpec"], f"{path}.container_spec")
    else:
        yield (f"{path}.task", "Either `container_spec` or `python_package_spec` must be set.")


def _python_package(task: dict[str, Any], path: str) -> Iterator[Problem]:
    yield from executor_image_problems(task.get("executorImageUri"), f"{path}.executor_image_uri")
    if not task.get("pythonModule"):
        yield (f"{path}.python_module", REQUIRED)
    uris = task.get("packageUris", [])
    if not uris:
        yield (f"{path}.package_uris", REQUIRED)
    if len(uris) > 100:
        yield (f"{path}.package_uris", f"At most 100 package URIs are allowed, found {len(uris)}.")
    for index, uri in enumerate(uris):
        if not _PACKAGE.fullmatch(uri):
            text = f'"{uri}" is not the Cloud Storage URI of a .tar.gz or .whl file (gs://bucket/object).'
            yield (f"{path}.package_uris[{index}]", text)
    yield from _arguments_and_env(task, path)


def _container(task: dict[str, Any], path: str) -> Iterator[Problem]:
    if not task.get("imageUri"):
        yield (f"{path}.image_uri", REQUIRED)
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
