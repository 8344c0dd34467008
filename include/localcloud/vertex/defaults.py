"""What Vertex adds to a job as it stores it: values that were left out, and those that follow from others."""

from __future__ import annotations

from typing import Any

from localcloud.vertex.machines import default_disk
from localcloud.vertex.scheduling_rules import DEFAULT_MAX_WAIT, DEFAULT_TIMEOUT

_BOOT_DISK_GB = 100


def with_defaults(job: dict[str, Any]) -> dict[str, Any]:
    """Return a checked CustomJob as it is stored; the one given is left as it is."""
    spec = dict(job["jobSpec"])
    spec["workerPoolSpecs"] = [_pool(pool) if pool else {} for pool in spec["workerPoolSpecs"]]
    spec["scheduling"] = _scheduling(spec.get("scheduling", {}))
    if "baseOutputDirectory" in spec:
        prefix = spec["baseOutputDirectory"]["outputUriPrefix"]
        spec["baseOutputDirectory"] = {"outputUriPrefix": prefix if prefix.endswith("/") else f"{prefix}/"}
    return {**job, "jobSpec": spec}


def _pool(pool: dict[str, Any]) -> dict[str, Any]:
    disk = pool.get("diskSpec", {})
    kind = disk.get("bootDiskType") or default_disk(pool["machineSpec"]["machineType"])
    size = disk.get("bootDiskSizeGb") or _BOOT_DISK_GB
    count = pool.get("replicaCount", "1")
    return {**pool, "replicaCount": count, "diskSpec": {"bootDiskType": kind, "bootDiskSizeGb": size}}


def _scheduling(scheduling: dict[str, Any]) -> dict[str, Any]:
    found = {"timeout": DEFAULT_TIMEOUT, **scheduling}
    if found.get("strategy") == "STRATEGY_UNSPECIFIED":
        found["strategy"] = "STANDARD"
    if found.get("strategy") == "FLEX_START":
        found.setdefault("maxWaitDuration", DEFAULT_MAX_WAIT)
    if found.get("disableRetries") and "restartJobOnWorkerRestart" in found:
        found["restartJobOnWorkerRestart"] = False
    return found
