"""The queue's own policy in the simulated cluster: `plan()` as production calls it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.replay.engine import REPORT_AFTER, Decision, SimulatedJob, Start

from trainops.policy.gpu_queue import Knobs, Lease, Request, plan

POOL = "GPU/replay/standard"
ROUNDING = 1e-3
"""Seconds by which sums of floating-point times may be short: else a moment could come again and again."""


class TrainopsQueue:
    """Trainops' policy. It is told what a queue is told: claims, and after ten minutes of running the job's report."""

    name = "Trainops"

    def __init__(self, capacity: int, knobs: Knobs) -> None:
        self.quotas = {POOL: capacity}
        self.knobs = knobs
        self._since: dict[str, float] = {}

    def decide(self, jobs: Sequence[SimulatedJob], free: int, now: float) -> Decision:
        """Plan, and let those who are asked leave at once; the next plan of the moment gives their GPUs away."""
        by_key = {job.key: job for job in jobs}
        made = plan([self._request(job, now) for job in jobs], self.quotas, now, self.knobs)
        for admission in made.admissions:
            self._since[admission.job_key] = now
        return Decision(
            start=[Start(by_key[item.job_key], item.probe, item.backfill) for item in made.admissions],
            stop=[by_key[item.job_key] for item in made.preemptions],
            again=bool(made.preemptions),
            wake=self._next_report(jobs, now),
        )

    def _request(self, job: SimulatedJob, now: float) -> Request:
        lease = None
        if job.since is not None:
            lease = Lease(gpus={POOL: job.gpus}, since=self._since[job.key], probe=job.probe, backfill=job.backfill)
        ran = job.ran + ROUNDING
        left = job.left(now)
        return Request(
            job_key=job.key,
            candidates=({POOL: job.gpus},),
            arrived=job.arrived,
            ran=ran,
            remaining=max(0.0, left - job.owed) * job.report_factor if ran >= REPORT_AFTER else None,
            estimate=job.claim,
            restart=job.owed,
            preemptions=job.preemptions,
            lease=lease,
        )

    @staticmethod
    def _next_report(jobs: Sequence[SimulatedJob], now: float) -> float:
        waited_for = [job for job in jobs if job.since is not None and job.ran + ROUNDING < REPORT_AFTER]
        return min((now + REPORT_AFTER - job.ran for job in waited_for), default=math.inf)
