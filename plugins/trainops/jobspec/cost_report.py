"""The cost of a job as people and as programs read it: lines of text, and a JSON object. Money is rounded here only."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from trainops.jobspec.cost import JobCost, PoolCost, Rate

_BASES = {"on_demand": "on demand", "spot": "Spot"}
_DIGITS = 6


def cost_lines(cost: JobCost, *, free_here: bool = False, deadline_hours: float | None = None) -> list[str]:
    """Return the prices per hour of every pool and of all, what the job pays, and how far to trust it.

    :param free_here: the job is to run on the local cloud, and only would cost this on Google Cloud.
    :param deadline_hours: hours after which the run ends, whatever it does; None when it has no such deadline.
    """
    title = "price per hour on Google Cloud" if free_here else "price per hour"
    rows = [(title, "on demand", "Spot"), *_rows(cost)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    table = [f"{name:<{widths[0]}}  {one:>{widths[1]}}  {other:>{widths[2]}}" for name, one, other in rows]
    counted = f"counted: list prices of {cost.list_region}, {cost.list_date}, with Vertex AI's 15% and boot disks"
    return [
        *table,
        f"this job {'would pay' if free_here else 'pays'}: {_paid(cost)}",
        *(["on the local cloud it pays nothing"] if free_here else []),
        *_until_timeout(cost),
        *_until_deadline(cost, deadline_hours),
        counted,
        f"not counted: {', '.join(cost.not_included)}",
        *(f"remark: {text}" for text in cost.remarks),
    ]


def cost_json(cost: JobCost) -> dict[str, Any]:
    """Return the same as a JSON object; null stands for a price that is unknown."""
    return {
        "currency": cost.currency,
        "list": {"region": cost.list_region, "date": cost.list_date, "source": cost.source},
        "region": cost.region,
        "per_hour": _rate_json(cost.rate),
        "basis": cost.basis,
        "this_job_per_hour": money_json(cost.per_hour),
        "pools": [_pool_json(pool) for pool in cost.pools],
        "trials": cost.trials,
        "parallel_trials": cost.parallel_trials,
        "timeout_hours": float(cost.timeout_hours),
        "at_most_until_timeout": money_json(cost.until_timeout()),
        "unknown": list(cost.unknown),
        "remarks": list(cost.remarks),
        "not_included": list(cost.not_included),
    }


def money(amount: Decimal | None) -> str:
    """Return US dollars as people read them."""
    return "unknown" if amount is None else f"${amount:,.2f}"


def money_json(amount: Decimal | None) -> float | None:
    """Return US dollars as a number of six decimals."""
    return None if amount is None else float(round(amount, _DIGITS))


def hours(length: Decimal | float) -> str:
    """Return a number of hours as people read it."""
    return "1 hour" if length == 1 else f"{float(length):,.6g} hours"


def _rows(cost: JobCost) -> list[tuple[str, str, str]]:
    rows = [_row(_described(pool), pool.rate) for pool in cost.pools]
    if len(cost.pools) > 1:
        rows.append(_row("all pools", cost.trial))
    if cost.parallel_trials > 1:
        rows.append(_row(f"{cost.parallel_trials} trials at once", cost.rate))
    return rows


def _row(name: str, rate: Rate) -> tuple[str, str, str]:
    return f"  {name}", money(rate.on_demand), money(rate.spot)


def _described(pool: PoolCost) -> str:
    return f"{pool.replicas} x {pool.machine}{pool.accelerator and ' with '}{pool.accelerator}"


def _paid(cost: JobCost) -> str:
    if cost.per_hour is None or cost.basis is None:
        return f"unknown: {'; '.join(cost.unknown)}"
    return f"{_BASES[cost.basis]}, {money(cost.per_hour)} per hour"


def _until_timeout(cost: JobCost) -> list[str]:
    most = cost.until_timeout()
    if most is None:
        return []
    what = f"if all {cost.trials} trials run" if cost.trials > 1 else "if it runs"
    return [f"at most {money(most)} {what} until the timeout of Vertex AI, {hours(cost.timeout_hours)}"]


def _until_deadline(cost: JobCost, deadline_hours: float | None) -> list[str]:
    most = None if deadline_hours is None else cost.at_most(Decimal(str(deadline_hours)))
    if deadline_hours is None or most is None:
        return []
    when = f"the run's deadline, {hours(deadline_hours)} from its start"
    return [f"at most {money(most)} with all its attempts until {when}"]


def _rate_json(rate: Rate) -> dict[str, float | None]:
    return {"on_demand": money_json(rate.on_demand), "spot": money_json(rate.spot)}


def _pool_json(pool: PoolCost) -> dict[str, Any]:
    described = {"index": pool.index, "replicas": pool.replicas, "machine": pool.machine}
    return {**described, "accelerator": pool.accelerator or None, **_rate_json(pool.rate), "unknown": pool.unpriced}
