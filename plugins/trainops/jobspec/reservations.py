"""Which reservations and mounts the machines of a job use."""

from __future__ import annotations

from typing import Any

from trainops.jobspec.notes import Notebook
from trainops.jobspec.pools import Pool
from trainops.jobspec.training_input import TrainingInput

_KEY = "vertex.reservationAffinity"
_RESERVATION_NAME = "compute.googleapis.com/reservation-name"


def reservation_affinity(spec: TrainingInput, pools: list[Pool], notebook: Notebook) -> dict[int, dict[str, Any]]:
    """Return the ReservationAffinity by position of the pool: pools with accelerators, or all when none has any.

    :raises ConfigError: SPECIFIC_RESERVATION without key and values, or another type with them.
    """
    affinity = spec.vertex.reservation_affinity
    if affinity is None:
        return {}
    specific = affinity.reservation_affinity_type == "SPECIFIC_RESERVATION"
    if specific and not (affinity.key == _RESERVATION_NAME and affinity.values):
        raise notebook.error(
            f"{_KEY}.key",
            "SPECIFIC_RESERVATION needs key and values",
            value=affinity.key,
            allowed=[_RESERVATION_NAME],
            next_step="set values to [projects/P/zones/Z/reservations/R]",
        )
    if not specific and (affinity.key or affinity.values):
        raise notebook.error(
            f"{_KEY}.key",
            f"{affinity.reservation_affinity_type} takes no key and no values",
            value=affinity.key,
            next_step="leave them out, or set reservationAffinityType to SPECIFIC_RESERVATION",
        )
    message = affinity.model_dump(by_alias=True, exclude_none=True)
    chosen = [pool for pool in pools if pool.equipment.image_kind != "cpu"] or pools
    for pool in chosen:
        notebook.mapped(_KEY, message, f"{pool.target}.machineSpec.reservationAffinity")
    return {pool.index: message for pool in chosen}


def nfs_mounts(spec: TrainingInput, notebook: Notebook) -> dict[str, Any]:
    """Return the mounts, which are the same for every pool; empty when there are none."""
    mounts = spec.vertex.nfs_mounts
    if mounts is None:
        return {}
    messages = [mount.model_dump(by_alias=True) for mount in mounts]
    notebook.mapped("vertex.nfsMounts", messages, "jobSpec.workerPoolSpecs[].nfsMounts")
    return {"nfsMounts": messages} if messages else {}
