"""Which reservations and mounts the machines of a job use."""

from __future__ import annotations

import re
from typing import Any

from trainops.jobspec.notes import Notebook
from trainops.jobspec.pools import Pool
from trainops.jobspec.training_input import TrainingInput
from trainops.jobspec.vertex_extras import ReservationAffinity

_KEY = "vertex.reservationAffinity"
_RESERVATION_NAME = "compute.googleapis.com/reservation-name"
_RESERVATION = re.compile(r"projects/[^/\s]+/zones/[^/\s]+/reservations/[^/\s]+")


def reservation_affinity(spec: TrainingInput, pools: list[Pool], notebook: Notebook) -> dict[int, dict[str, Any]]:
    """Return the ReservationAffinity by position of the pool: pools with accelerators, or all when none has any.

    :raises ConfigError: SPECIFIC_RESERVATION without key and reservations, or another type with them.
    """
    affinity = spec.vertex.reservation_affinity
    if affinity is None:
        return {}
    _check_affinity(affinity, notebook)
    message = affinity.model_dump(by_alias=True, exclude_none=True)
    chosen = [pool for pool in pools if pool.equipment.image_kind != "cpu"] or pools
    for pool in chosen:
        notebook.mapped(_KEY, message, f"{pool.target}.machineSpec.reservationAffinity")
    return {pool.index: message for pool in chosen}


def _check_affinity(affinity: ReservationAffinity, notebook: Notebook) -> None:
    kind = affinity.reservation_affinity_type
    if kind == "SPECIFIC_RESERVATION":
        if affinity.key != _RESERVATION_NAME:
            raise notebook.error(
                f"{_KEY}.key",
                f"{kind} needs a key",
                value=affinity.key,
                allowed=[_RESERVATION_NAME],
                next_step=f"set it to {_RESERVATION_NAME}",
            )
        _check_reservations(affinity.values or [], notebook)
    elif affinity.key or affinity.values:
        raise notebook.error(
            f"{_KEY}.{'key' if affinity.key else 'values'}",
            f"{kind} takes no key and no values",
            value=affinity.key or affinity.values,
            next_step="leave them out, or set reservationAffinityType to SPECIFIC_RESERVATION",
        )


def _check_reservations(values: list[str], notebook: Notebook) -> None:
    next_step = "write projects/PROJECT/zones/ZONE/reservations/NAME"
    if not values:
        raise notebook.error(f"{_KEY}.values", "SPECIFIC_RESERVATION needs a reservation", next_step=next_step)
    for index, value in enumerate(values):
        if not _RESERVATION.fullmatch(value):
            raise notebook.error(
                f"{_KEY}.values.{index}", "this is no reservation's full name", value=value, next_step=next_step
            )


def nfs_mounts(spec: TrainingInput, notebook: Notebook) -> dict[str, Any]:
    """Return the mounts, which are the same for every pool; empty when there are none."""
    mounts = spec.vertex.nfs_mounts
    if mounts is None:
        return {}
    messages = [mount.model_dump(by_alias=True) for mount in mounts]
    notebook.mapped("vertex.nfsMounts", messages, "jobSpec.workerPoolSpecs[].nfsMounts")
    return {"nfsMounts": messages} if messages else {}
