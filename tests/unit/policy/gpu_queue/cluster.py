"""Requests for tests, and what becomes of them when a plan is carried out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from trainops.policy.gpu_queue import Knobs, Lease, QueuePlan, Request, plan

POOL = "NVIDIA_L4/us-central1/standard"
OTHER = "NVIDIA_L4/europe-west4/standard"
HOUR = 3600.0
NOW = 10_000_000.0
KNOBS = Knobs()


def request(key: str, gpus: int | Mapping[str, int] = 1, *, waited_h: float = 0.0, **more: Any) -> Request:
    """A request of one candidate that arrived `waited_h` hours ago and has not run."""
    wanted = {POOL: gpus} if isinstance(gpus, int) else gpus
    fields = {"candidates": (wanted,), "arrived": NOW - waited_h * HOUR, **more}
    return Request(job_key=key, **fields)


def running(
    key: str, gpus: int | Mapping[str, int] = 1, *, ran_h: float = 1.0, left_h: float = 1.0, **more: Any
) -> Request:
    """A job that has run for a while, and reports what is left."""
    wanted = {POOL: gpus} if isinstance(gpus, int) else gpus
    lease = {name: more.pop(name) for name in ("probe", "backfill", "leaving") if name in more}
    return Request(
        job_key=key,
        candidates=(wanted,),
        arrived=NOW - ran_h * HOUR,
        ran=ran_h * HOUR,
        remaining=left_h * HOUR,
        lease=Lease(gpus=wanted, since=NOW - ran_h * HOUR, **lease),
        **more,
    )


def planned(
    *requests: Request, quotas: Mapping[str, int] | None = None, knobs: Knobs = KNOBS, **more: Any
) -> QueuePlan:
    """The plan for these requests, on eight GPUs unless told otherwise."""
    return plan(requests, quotas or {POOL: 8}, NOW, knobs, **more)


def admitted(made: QueuePlan) -> list[str]:
    """Who starts, in order."""
    return [item.job_key for item in made.admissions]


def asked_to_leave(made: QueuePlan) -> list[str]:
    """Who is asked to leave."""
    return [item.job_key for item in made.preemptions]


def carried_out(requests: Iterable[Request], made: QueuePlan, now: float) -> list[Request]:
    """The requests after the plan: those admitted hold GPUs, those asked to leave are leaving."""
    starts = {item.job_key: item for item in made.admissions}
    leaving = {item.job_key for item in made.preemptions}
    after = []
    for item in requests:
        if item.job_key in starts:
            start = starts[item.job_key]
            lease = Lease(gpus=start.gpus, since=now, probe=start.probe, backfill=start.backfill)
            after.append(replace(item, lease=lease))
        elif item.job_key in leaving:
            assert item.lease is not None
            after.append(replace(item, lease=replace(item.lease, leaving=True), evicted=""))
        else:
            after.append(item)
    return after


def without_the_leaving(requests: Iterable[Request]) -> list[Request]:
    """The requests once those who were asked have left, and wait again."""
    return [
        replace(item, lease=None, preemptions=item.preemptions + 1, restart=420.0)
        if item.lease is not None and item.lease.leaving
        else item
        for item in requests
    ]


def held(requests: Iterable[Request]) -> dict[str, int]:
    """GPUs held by pool."""
    total: dict[str, int] = {}
    for item in requests:
        for pool, count in (item.lease.gpus if item.lease else {}).items():
            total[pool] = total.get(pool, 0) + count
    return total
