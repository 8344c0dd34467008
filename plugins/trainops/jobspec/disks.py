"""Boot disks: their size, and which type a machine takes."""

from __future__ import annotations

from typing import Any

from trainops.jobspec.notes import Notebook
from trainops.jobspec.training_input import DiskConfig

_GB = (100, 64000)
_PERSISTENT = ("pd-ssd", "pd-standard")
_HYPERDISK = "hyperdisk-balanced"
_ONLY_HYPERDISK = ("a3-ultragpu-", "a4-", "a4x-", "g4-", "n4-")
"""Machines with Hyperdisk alone, which is then their default.

A3 Ultra and A4: DiskSpec of Vertex AI. A4X, G4 and N4 take no Persistent Disk on Compute Engine, as of 2026-08:
https://cloud.google.com/compute/docs/disks/hyperdisks
"""
_NO_HYPERDISK = ("n1-", "n2-", "e2-", "c2-", "a2-", "g2-")
"""Machines without it, as of 2026-08. Source: https://cloud.google.com/compute/docs/disks/hyperdisks"""


def disk_types(machine: str) -> tuple[str, ...]:
    """Return the types of boot disk that a machine takes, its default first."""
    if machine.startswith(_ONLY_HYPERDISK):
        return (_HYPERDISK,)
    return _PERSISTENT if machine.startswith(_NO_HYPERDISK) else (*_PERSISTENT, _HYPERDISK)


def check_disk(disk: DiskConfig | None, key: str, machine: str, target: str, notebook: Notebook) -> None:
    """Refuse a disk that the machine cannot have, and note it else.

    :param key: key of the diskConfig.
    :param target: path of the DiskSpec in the CustomJob.
    """
    if disk is None:
        return
    low, high = _GB
    size, kind, types = disk.boot_disk_size_gb, disk.boot_disk_type, disk_types(machine)
    if size is not None and not low <= size <= high:
        next_step = f"write a size between, or leave it out for {low} GB"
        raise notebook.error(
            f"{key}.bootDiskSizeGb", f"a boot disk has {low} to {high} GB", value=size, next_step=next_step
        )
    if kind is not None and kind not in types:
        raise notebook.error(
            f"{key}.bootDiskType",
            f"{machine} takes no such boot disk",
            value=kind,
            allowed=types,
            next_step=f"leave it out for {types[0]}",
        )
    if disk_spec(disk):
        notebook.mapped(key, disk_spec(disk), target)
    else:
        notebook.mapped(key, {}, "", f"empty: the default disk, {low} GB of {types[0]}")


def disk_spec(disk: DiskConfig | None) -> dict[str, Any]:
    """Return the DiskSpec of a pool; empty when nothing is said."""
    return {} if disk is None else disk.model_dump(by_alias=True, exclude_none=True)
