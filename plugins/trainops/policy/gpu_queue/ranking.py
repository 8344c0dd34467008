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

    def order(self, request: Request) -> tuple[int, bool, float, str]:
        """The key to sort by, over all priority classes."""
        return (-request.priority, not self.overdue, self.value, request.job_key)


def rank(request: Request, knobs: Knobs, now: float) -> Rank:
    """Rank a request.

    A job that never ran long enough to report counts for a short probe: it gets the chance to tell what it needs, and a
    claim, which nobody can check, gains nothing.
    """
    waited = max(0.0, now - request.arrived - request.ran)
    boost = 1 + knobs.boost * min(1.0, waited / knobs.full_boost_after) ** knobs.boost_shape
    if waited > knobs.overdue_after:
        return Rank(True, request.arrived, boost, waited)
    work = _work(request, knobs) / boost
    lease = request.lease
    if lease is not None and not lease.leaving:
        work *= max(knobs.preempted_floor, knobs.preempted_again**request.preemptions)
        work *= 1.0 if lease.backfill else 1 - knobs.stickiness
    return Rank(False, work, boost, waited)


def protected(request: Request, knobs: Knobs, now: float) -> bool:
    """True of a job that was started so recently that no request of its class takes its place."""
    lease = request.lease
    if lease is None or lease.leaving or lease.backfill:
        return False
    return now - lease.since < (knobs.report_after if lease.probe else knobs.min_run)


def _work(request: Request, knobs: Knobs) -> float:
    if request.ran < knobs.report_after:
        return knobs.probe_work + request.restart * request.gpus
    return request.left(knobs.default_estimate) * request.gpus
