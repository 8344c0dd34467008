"""The order of requests within a priority class: least work first, with a bounded boost for waiting."""

from __future__ import annotations

from dataclasses import dataclass

from trainops.policy.gpu_queue.knobs import Knobs
from trainops.policy.gpu_queue.request import Request


@dataclass(frozen=True, slots=True)
class Rank:
    """Where a request stands; what sorts first goes first."""

    overdue: bool
    value: float
    """Of an overdue request the moment it arrived, else its work in GPU-seconds as the policy counts it."""
    boost: float
    """How many times less work it counts for, since it waited."""
    waited: float
    """Seconds since it arrived in which it did not run."""
    full_boost_at: float
    """Seconds of waiting at which its boost is full."""
    overdue_at: float
    """Seconds of waiting at which it is overdue."""

    def order(self, request: Request) -> tuple[int, bool, float, str]:
        """The key to sort by, over all priority classes."""
        return (-request.priority, not self.overdue, self.value, request.job_key)


def rank(request: Request, knobs: Knobs, now: float) -> Rank:
    """Rank a request.

    A job that never ran long enough to report counts for a short probe: it gets the chance to tell what it needs, and a
    claim, which nobody can check, gains nothing.
    """
    waited = max(0.0, now - request.arrived - request.ran)
    full, overdue = _patience(request, knobs)
    boost = 1 + knobs.boost * min(1.0, waited / full) ** knobs.boost_shape
    if waited > overdue:
        return Rank(True, request.arrived, boost, waited, full, overdue)
    work = _work(request, knobs) / boost
    lease = request.lease
    if lease is not None and not lease.leaving:
        work *= max(knobs.preempted_floor, knobs.preempted_again**request.preemptions)
        work *= 1.0 if lease.backfill else 1 - knobs.stickiness
    return Rank(False, work, boost, waited, full, overdue)


def protected(request: Request, knobs: Knobs, now: float) -> bool:
    """True of a job that was started so recently that no request of its class takes its place."""
    lease = request.lease
    if lease is None or lease.leaving or lease.backfill:
        return False
    return now - lease.since < (knobs.report_after if lease.probe else knobs.min_run)


def _patience(request: Request, knobs: Knobs) -> tuple[float, float]:
    """Seconds of waiting after which the boost is full, and after which the request is overdue."""
    if request.ran < knobs.report_after:  # nobody knows what it needs
        return knobs.full_boost_after, knobs.overdue_after
    left = request.left(knobs.default_estimate)
    full = max(knobs.full_boost_least, knobs.full_boost_times * left)
    overdue = max(knobs.overdue_least, knobs.overdue_times * left)
    return min(full, knobs.full_boost_after), min(overdue, knobs.overdue_after)


def _work(request: Request, knobs: Knobs) -> float:
    if request.ran < knobs.report_after:
        return knobs.probe_work + request.restart * request.gpus
    return request.left(knobs.default_estimate) * request.gpus
