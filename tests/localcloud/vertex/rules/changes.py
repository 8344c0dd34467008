"""A good CustomJob, changes to it, and what a rule is.

The texts of rules are facts of the reference of CustomJob and of the pages on configuring, scheduling and reserving
compute for custom training (docs.cloud.google.com, as of 2026-08-22; messages of google-cloud-aiplatform 2.7.0).
A change is a dotted path into the good job and the value to put there; `GONE` takes the field out.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

GONE = object()
REQUIRED = "Required field is not set."
POOLS = "jobSpec.workerPoolSpecs"
POOL, PACKAGE = f"{POOLS}.0", f"{POOLS}.0.pythonPackageSpec"
MACHINE, DISK, SCHEDULING = f"{POOL}.machineSpec", f"{POOL}.diskSpec", "jobSpec.scheduling"
AFFINITY = f"{MACHINE}.reservationAffinity"
AT = "job_spec.worker_pool_specs[0]"
SPEC, PYTHON, WHEEL = f"{AT}.machine_spec", f"{AT}.python_package_spec", "gs://my-bucket/p.whl"
IMAGE = "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-11.py310:latest"
RESERVATION_KEY = "compute.googleapis.com/reservation-name"
RESERVATION = "projects/p/zones/us-central1-a/reservations/r"
KMS = "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"

Change = dict[str, Any]
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
                    "executorImageUri": IMAGE,
                    "packageUris": [WHEEL],
                    "pythonModule": "m",
                    "env": [{"name": "A", "value": "1"}],
                },
            },
            {},
            {
                "machineSpec": {"machineType": "e2-standard-4"},
                "replicaCount": "3",
                "containerSpec": {"imageUri": "gcr.io/my-project/image"},
            },
        ],
        "scheduling": {"timeout": "60s"},
    },
}


def changed(change: Change) -> dict[str, Any]:
    """Return the good job with a change."""
    job = copy.deepcopy(GOOD)
    for path, value in change.items():
        target: Any = job
        *parents, last = path.split(".")
        for parent in parents:
            target = target[int(parent)] if isinstance(target, list) else target.setdefault(parent, {})
        key: Any = int(last) if isinstance(target, list) else last
        if value is GONE:
            del target[key]
        else:
            target[key] = value
    return job


@dataclass(frozen=True)
class Bad:
    """A job that is refused: at this field, with a message that holds these words."""

    change: Change
    field: str
    words: str


@dataclass(frozen=True)
class Rule:
    """One rule, and where its tests are when creation has no part in it."""

    field: str
    text: str
    bad: tuple[Bad, ...] = ()
    good: tuple[Change, ...] = ()
    elsewhere: tuple[str, ...] = ()


def gpu(machine: str, kind: str, count: int) -> Change:
    """A primary on this machine, with the disk that it gets by itself."""
    return {MACHINE: {"machineType": machine, "acceleratorType": kind, "acceleratorCount": count}, DISK: {}}


def cpu(machine: str, disk: dict[str, Any]) -> Change:
    """A primary on a machine without accelerators, with this disk."""
    return {MACHINE: {"machineType": machine}, DISK: disk}


def flex(machine: str, kind: str, count: int, **scheduling: str) -> Change:
    """A job of one such machine under FLEX_START."""
    alone = {f"{POOLS}.2": {}, SCHEDULING: {"strategy": "FLEX_START", **scheduling}}
    return gpu(machine, kind, count) | alone


def labels(**found: str) -> Change:
    return {"labels": found}


def env(*names: str) -> Change:
    return {f"{PACKAGE}.env": [{"name": name, "value": "x"} for name in names]}


L4 = ("g2-standard-4", "NVIDIA_L4", 1)
FLEX_GPUS = (
    L4,
    ("a2-highgpu-1g", "NVIDIA_TESLA_A100", 1),
    ("a2-ultragpu-1g", "NVIDIA_A100_80GB", 1),
    ("a3-highgpu-8g", "NVIDIA_H100_80GB", 8),
    ("a3-megagpu-8g", "NVIDIA_H100_MEGA_80GB", 8),
    ("a3-ultragpu-8g", "NVIDIA_H200_141GB", 8),
    ("a4-highgpu-8g", "NVIDIA_B200", 8),
)
LABEL_RULE = "Keys start with a lowercase letter"
URI = "is not the Cloud Storage URI of a .tar.gz or .whl file"
BOTH = "Both `accelerator_type` and `accelerator_count` should be specified or none. "
NO_DURATION = "(type.googleapis.com/google.protobuf.Duration)"
POD = {MACHINE: {"machineType": "cloud-tpu", "acceleratorType": "TPU_V2", "acceleratorCount": 32}}
