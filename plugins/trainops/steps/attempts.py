"""How the attempts of a record change: one ends, or is cancelled since it had not left in time."""

from __future__ import annotations

from datetime import datetime

from trainops.jobspec.cost import job_cost
from trainops.policy.lifecycle import Action, Job
from trainops.policy.record import Attempt, Candidate, Record
from trainops.policy.spending import ran_seconds


def ended_attempts(record: Record, action: Action, now: datetime) -> tuple[Attempt, ...]:
    """The attempts, the current one ended as the action says, with how long its machines ran and what that costs."""
    attempt, job = record.attempts[-1], action.job
    ended = attempt.model_copy(update={"ended_at": now, "started_at": None if job is None else job.started_at})
    seconds = ran_seconds(ended, now) if job is None else 0.0  # a job that Google never started ran on no machine
    if job is not None and job.started_at is not None:
        seconds = max(0.0, ((job.ended_at or now) - job.started_at).total_seconds())
    price = attempt.usd_per_hour
    return record.with_attempt(
        verdict=action.verdict, message=action.why, exit_code=action.exit_code, ended_at=now,
        started_at=ended.started_at, ran_seconds=seconds, usd=None if price is None else seconds / 3600 * price,
    )  # fmt: skip


def usd_per_hour(machines: Candidate) -> float | None:
    """Price of machines by the list; None where it has none."""
    price = job_cost(machines.spec, machines.region).per_hour
    return None if price is None else float(price)


def late_attempts(record: Record, job: Job) -> tuple[Attempt, ...]:
    """The attempts, with a note that the current one was cancelled since it had not left in time, if that is why."""
    attempt = record.attempt
    if record.cancel is not None or attempt is None or attempt.leave is None or attempt.job_name != job.name:
        return record.attempts
    return record.with_attempt(leave=attempt.leave.model_copy(update={"cancelled": True}))
