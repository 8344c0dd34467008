"""What a custom job takes from the quota: accelerators and machines over all its replicas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from trainops.jobspec.tpus import chips


def accelerators(job: Mapping[str, Any]) -> dict[str, int]:
    """Return accelerator type -> number over all replicas of a CustomJob in REST JSON; TPU slices count chips."""
    total: Counter[str] = Counter()
    for replicas, machine in _machines(job):
        if "acceleratorType" in machine:
            total[machine["acceleratorType"]] += replicas * int(machine["acceleratorCount"])
        elif "tpuTopology" in machine:
            name, number = chips(machine["machineType"], machine["tpuTopology"])
            total[name] += replicas * number
    return dict(total)


def machines(job: Mapping[str, Any]) -> dict[str, int]:
    """Return machine type -> number of replicas of a CustomJob in REST JSON."""
    total: Counter[str] = Counter()
    for replicas, machine in _machines(job):
        total[machine["machineType"]] += replicas
    return dict(total)


def _machines(job: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for pool in job["jobSpec"]["workerPoolSpecs"]:
        if pool:
            yield int(pool["replicaCount"]), pool["machineSpec"]
