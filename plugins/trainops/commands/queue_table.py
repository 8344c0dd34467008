"""The GPU queue as a table: pools, who holds their GPUs, and who waits."""

from __future__ import annotations

from typing import Any

from trainops.config.priority import class_name
from trainops.policy.gpu_queue import Request
from trainops.steps.gpu_queue import Tick


def rows_of(tick: Tick) -> list[dict[str, Any]]:
    """One row for each job key: those that hold GPUs first, then those that wait, by rank."""
    reasons = tick.reasons
    places = {request.job_key: place for place, (request, _) in enumerate(tick.made.plan.order, start=1)}
    holding = {request.job_key for request in tick.made.asked if request.lease is not None}
    ordered = sorted(tick.made.asked, key=lambda item: (item.job_key not in holding, places.get(item.job_key, 10**9)))
    return [_row(item, places.get(item.job_key), reasons[item.job_key], tick) for item in ordered]


def table(rows: list[dict[str, Any]], tick: Tick) -> str:
    """The rows for people, below the pools."""
    held = {pool: sum(row["gpus"].get(pool, 0) for row in rows if row["state"] != "waits") for pool in tick.quotas}
    closed = tick.made.view.closed
    lines = [
        f"{pool:<50} {held[pool]} of {quota} held{', drained' if pool in closed else ''}"
        for pool, quota in tick.quotas.items()
    ]
    for row in rows:
        lines += ["", f"{row['job_key']}: {row['state']}, priority {class_name(row['priority'])}", f"  {row['reason']}"]
    return "\n".join(lines if rows else [*lines, "", "nobody holds or waits for GPUs"])


def _row(request: Request, rank: int | None, reason: str, tick: Tick) -> dict[str, Any]:
    lease = tick.ledger.leases.get(request.job_key)
    state = "waits" if lease is None else "leaves" if lease.leaving is not None else lease.state
    return {
        "job_key": request.job_key,
        "state": state,
        "rank": rank,
        "priority": request.priority,
        "gpus": dict(request.candidates[0] if request.lease is None else request.lease.gpus),
        "remaining_hours": None if request.remaining is None else round(request.remaining / 3600, 3),
        "ran_hours": round(request.ran / 3600, 3),
        "preemptions": request.preemptions,
        "preemptible": request.preemptible if request.lease is not None else None,
        "reason": reason,
    }
