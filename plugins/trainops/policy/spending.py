"""What a generation has cost so far: pure, from the record, by the price that each attempt was begun with.

Machines are paid from the moment at which Google says that they run until the end. A job that waited for them in vain
costs nothing.
"""

from __future__ import annotations

from datetime import datetime

from trainops.config.gpu_pools import CPU
from trainops.policy.record import Attempt, Record


def ran_seconds(attempt: Attempt, now: datetime) -> float:
    """Seconds for which the machines of an attempt ran; while it lives, since its job is known at the most."""
    if attempt.ran_seconds is not None:
        return attempt.ran_seconds
    begun = attempt.started_at or attempt.bound_at
    return 0.0 if begun is None else max(0.0, ((attempt.ended_at or now) - begun).total_seconds())


def spent_usd(record: Record, now: datetime) -> float:
    """US dollars that the attempts of the generation cost so far; those without a price count nothing."""
    return sum(ran_seconds(item, now) / 3600 * (item.usd_per_hour or 0.0) for item in record.attempts)


def gpu_hours(record: Record, now: datetime) -> float:
    """GPU hours of all attempts of the generation so far."""
    counts = [sum(n for kind, n in item.accelerators.items() if kind != CPU) for item in record.candidates]
    return sum(ran_seconds(item, now) / 3600 * counts[item.candidate] for item in record.attempts)


def over_cap(record: Record, now: datetime) -> str:
    """Why the generation must end: its cap is reached; empty when it is not, or there is none."""
    cap = record.limits.max_usd
    spent = 0.0 if cap is None else spent_usd(record, now)
    if cap is None or spent < cap:
        return ""
    return f"its jobs have cost {spent:,.{2 if spent >= 1 else 4}f} USD by the price list, and its cap is {cap:,g} USD"
