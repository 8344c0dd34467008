"""What a worker pool may ask of its machines: accelerators, reservations, boot disk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from localcloud.vertex.machines import default_disk, disk_types, machine_problem
from localcloud.vertex.problems import REQUIRED, Problem

_DISK_GB = (100, 64_000)
_RESERVATION_KEY = "compute.googleapis.com/reservation-name"
_RESERVATION = re.compile(r"projects/[^/\s]+/zones/[^/\s]+/reservations/[^/\s]+")


def machine_problems(machine: dict[str, Any], path: str) -> Iterator[Problem]:
    """Yield what is wrong with a MachineSpec."""
    if "reservationAffinity" in machine:
        yield from _reservation(machine["reservationAffinity"], f"{path}.reservation_affinity")
    kind = machine.get("acceleratorType", "ACCELERATOR_TYPE_UNSPECIFIED")
    accelerator = None if kind == "ACCELERATOR_TYPE_UNSPECIFIED" else kind
    count = machine.get("acceleratorCount", 0)
    if not machine.get("machineType"):
        yield (f"{path}.machine_type", REQUIRED)
        return
    if (accelerator is None) != (count == 0):
        both = "Both `accelerator_type` and `accelerator_count` should be specified or none. "
        yield (f"{path}.accelerator_type", both)
        return
    problem = machine_problem(machine["machineType"], accelerator, count)
    if problem:
        yield (f"{path}.{problem[0]}", problem[1])


def disk_problems(disk: dict[str, Any], machine: str, path: str) -> Iterator[Problem]:
    """Yield what is wrong with the DiskSpec of a pool of such machines."""
    kind, supported = disk.get("bootDiskType") or default_disk(machine), disk_types(machine)
    if kind not in supported:
        text = f'Disk type "{kind}" is not supported for machine type "{machine}"; supported: {", ".join(supported)}.'
        yield (f"{path}.boot_disk_type", text)
    size = disk.get("bootDiskSizeGb", 0) or _DISK_GB[0]
    if not _DISK_GB[0] <= size <= _DISK_GB[1]:
        text = f"The boot disk size must be between {_DISK_GB[0]} and {_DISK_GB[1]} GB, found {size}."
        yield (f"{path}.boot_disk_size_gb", text)


def _reservation(affinity: dict[str, Any], path: str) -> Iterator[Problem]:
    kind = affinity.get("reservationAffinityType", "TYPE_UNSPECIFIED")
    key, values = affinity.get("key", ""), affinity.get("values", [])
    if kind == "TYPE_UNSPECIFIED":
        yield (f"{path}.reservation_affinity_type", REQUIRED)
    elif kind != "SPECIFIC_RESERVATION":
        if key or values:
            yield (f"{path}.key", "`key` and `values` are only allowed with SPECIFIC_RESERVATION.")
    else:
        if key != _RESERVATION_KEY:
            yield (f"{path}.key", f"SPECIFIC_RESERVATION requires the key {_RESERVATION_KEY}.")
        if not values:
            yield (f"{path}.values", REQUIRED)
        for index, value in enumerate(values):
            if not _RESERVATION.fullmatch(value):
                form = "projects/{project}/zones/{zone}/reservations/{reservation}"
                yield (f"{path}.values[{index}]", f'"{value}" is not of the form {form}.')
