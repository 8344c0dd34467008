"""Who gets GPUs next: pure and deterministic.

Quota is per pool: accelerator x region x provisioning model. A request asks for all its GPUs, of all its pools, at once
(gang). In this first form the order is priority class, then first come, first served, and nobody passes a request of
the same pool that waits: a gang is never starved by small jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class Request:
    """A job key that wants GPUs."""

    job_key: str
    gpus: Mapping[str, int]
    """GPUs by pool name."""
    arrived: datetime
    priority: int = 0
    """Priority class; higher first."""


@dataclass(frozen=True, kw_only=True)
class Holding:
    """GPUs that a job key holds, reserved or in use."""

    job_key: str
    gpus: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class QueuePlan:
    """Admissions, in order, and for every other request the sentence that says why it waits."""

    admissions: tuple[str, ...]
    reasons: Mapping[str, str]


def plan(requests: Iterable[Request], holdings: Iterable[Holding], quotas: Mapping[str, int]) -> QueuePlan:
    """Admit requests, first come first served within priority classes, as far as the pools' quotas go."""
    free = _free(holdings, quotas)
    closed: dict[str, str] = {}
    admissions: list[str] = []
    reasons: dict[str, str] = {}
    ordered = sorted(requests, key=lambda item: (-item.priority, item.arrived, item.job_key))
    for rank, request in enumerate(ordered, start=1):
        blocked = _blocked(request, free, quotas, closed)
        if blocked is None:
            admissions.append(request.job_key)
            for pool, count in request.gpus.items():
                free[pool] -= count
            continue
        reasons[request.job_key] = f"rank {rank} of {len(ordered)}: {blocked}"
        for pool in request.gpus:
            closed.setdefault(pool, request.job_key)
    return QueuePlan(admissions=tuple(admissions), reasons=reasons)


def _free(holdings: Iterable[Holding], quotas: Mapping[str, int]) -> dict[str, int]:
    free = dict(quotas)
    for holding in holdings:
        for pool, count in holding.gpus.items():
            free[pool] = free.get(pool, 0) - count
    return free


def _blocked(
    request: Request, free: Mapping[str, int], quotas: Mapping[str, int], closed: Mapping[str, str]
) -> str | None:
    for pool, count in request.gpus.items():
        if count > quotas.get(pool, 0):
            return f"needs {count} GPUs of {pool}, whose quota is {quotas.get(pool, 0)}: it can never start"
        if pool in closed:
            return f"needs {count} GPUs of {pool}; {closed[pool]} came first and waits for the same pool"
        if count > free[pool]:
            return f"needs {count} GPUs of {pool}, {max(0, free[pool])} of {quotas[pool]} are free"
    return None
