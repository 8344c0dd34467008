"""What fits on which machine type: accelerators and boot disks.

Boot disks go by the beginning of the machine type. Default and supported types: DiskSpec of Vertex AI. Which series
have no Hyperdisk Balanced: https://cloud.google.com/compute/docs/disks/hyperdisks, as of 2026-08.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_TABLE = json.loads(Path(__file__).with_name("machine_types.json").read_text(encoding="utf-8"))
_FITS: dict[str, dict[str, list[int]]] = _TABLE["machines"]
_REQUIRED: tuple[str, ...] = tuple(_TABLE["accelerator_required"])
_TPU: frozenset[str] = frozenset(_TABLE["tpu_machines"])
_DISKS: dict[str, list[str]] = _TABLE["disk_types"]
_TPU_CORES = 8


def disk_types(machine: str) -> list[str]:
    """Return the boot disks that a machine type takes, its default first; all of them for an unknown machine."""
    series = [prefix for prefix in _DISKS if machine.startswith(prefix)]
    return _DISKS[max(series, key=len)]


def default_disk(machine: str) -> str:
    """Return the boot disk that a machine gets when the job names none."""
    return disk_types(machine)[0]


def is_tpu_pod(machine: dict[str, Any]) -> bool:
    """Whether a MachineSpec asks for a Pod: cloud-tpu with more than one device of 8 cores, or a TPU v4."""
    kind, count = machine.get("acceleratorType", ""), machine.get("acceleratorCount", 0)
    return kind == "TPU_V4_POD" or (machine.get("machineType") == "cloud-tpu" and count > _TPU_CORES)


def machine_problem(machine: str, accelerator: str | None, count: int) -> tuple[str, str] | None:
    """Return field of the machine spec and message of what is wrong with it, or None.

    :param accelerator: None when the spec names none; `count` is 0 then.
    """
    if machine in _TPU:
        return ("machine_type", f'TPU machine type "{machine}" is not supported by the local stand-in.')
    if machine not in _FITS:
        return ("machine_type", f'Machine type "{machine}" is not supported.')
    if accelerator is None:
        needed = machine.startswith(_REQUIRED)
        return ("accelerator_type", f'Machine type "{machine}" requires accelerators.') if needed else None
    counts = _FITS[machine].get(accelerator)
    if counts is None:
        return ("accelerator_type", f'Accelerator "{accelerator}" is not supported for machine type "{machine}"')
    if count not in counts:
        allowed = ", ".join(str(item) for item in counts)
        text = f'Accelerator count {count} of "{accelerator}" is not supported for machine type "{machine}"'
        return ("accelerator_count", f"{text}; supported counts: {allowed}.")
    return None
