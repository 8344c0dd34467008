"""The simulated cluster: one pool of GPUs, jobs that arrive, run, are preempted and end. A policy decides who runs."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from benchmarks.replay.trace import TracedJob

LOST_PER_PREEMPTION = 420.0
"""Seconds of all its GPUs that a job loses each time it is preempted: steps since its last checkpoint, and loading."""
REPORT_AFTER = 600.0
"""Seconds of running after which a job knows how long it needs."""
REPORT_SIGMA = 0.05
"""Error of that knowledge: standard deviation of its logarithm."""
EPSILON = 1e-6


@dataclass(slots=True, eq=False)
class SimulatedJob:
    """One job, as it goes on; a policy may read what a queue would know, a clairvoyant one the rest."""

    key: str
    arrived: float
    duration: float
    gpus: int
    claim: float
    """Seconds that its owner says it takes."""
    report_factor: float
    """How far off its own report is."""
    done: float = 0.0
    """Seconds of useful running up to `since`, or up to now when it waits."""
    ran: float = 0.0
    """Seconds of running up to then, with those that repeat what was lost."""
    owed: float = 0.0
    """Seconds of running that repeat what was lost, before the rest goes on."""
    since: float | None = None
    """Moment at which it was started; None while it waits."""
    probe: bool = False
    backfill: bool = False
    preemptions: int = 0
    lost: float = 0.0
    ended: float = math.nan

    def advance(self, now: float) -> None:
        """Let it run up to `now`."""
        if self.since is not None:
            passed = now - self.since
            self.done += max(0.0, passed - self.owed)
            self.owed = max(0.0, self.owed - passed)
            self.ran += passed
            self.since = now

    def left(self, now: float) -> float:
        """Seconds that it must run still."""
        return self.duration - self.done + self.owed - (now - self.since if self.since is not None else 0.0)


@dataclass(slots=True)
class Start:
    """A job to start, with what the policy wants to know of it later."""

    job: SimulatedJob
    probe: bool = False
    backfill: bool = False


@dataclass(slots=True)
class Decision:
    """What a policy wants at one moment; who stops, stops first."""

    start: list[Start] = field(default_factory=list)
    stop: list[SimulatedJob] = field(default_factory=list)
    again: bool = False
    """Ask once more at the same moment, since GPUs have come free."""
    wake: float = math.inf
    """Ask at this moment, even if nothing happens."""


class Policy(Protocol):
    """Decides who runs."""

    name: str

    def decide(self, jobs: Sequence[SimulatedJob], free: int, now: float) -> Decision:
        """Decide for all jobs that arrived and have not ended."""


@dataclass(slots=True, eq=False)
class Cluster:
    """GPUs, and the jobs of a trace on them."""

    capacity: int
    jobs: list[SimulatedJob]
    free: int = 0
    admitted_at: dict[str, float] = field(default_factory=dict)
    active: dict[str, SimulatedJob] = field(default_factory=dict)

    def replay(self, policy: Policy) -> list[SimulatedJob]:
        """Run the trace to its end under a policy, and return the jobs as they ended."""
        self.free = self.capacity
        arrivals = sorted(self.jobs, key=lambda job: (job.arrived, job.key))
        place, wake = 0, math.inf
        while place < len(arrivals) or self.active:
            following = arrivals[place].arrived if place < len(arrivals) else math.inf
            now = min(following, self._next_end(), wake)
            if math.isinf(now):
                raise RuntimeError(f"{policy.name}: {len(self.active)} jobs wait, and nothing will happen any more")
            while place < len(arrivals) and arrivals[place].arrived <= now:
                self.active[arrivals[place].key] = arrivals[place]
                place += 1
            self._go_on(now)
            wake = self._apply(policy, now)
        return self.jobs

    def _next_end(self) -> float:
        return min(
            (job.since + job.duration - job.done + job.owed for job in self.active.values() if job.since is not None),
            default=math.inf,
        )

    def _go_on(self, now: float) -> None:
        for job in list(self.active.values()):
            job.advance(now)
            if job.since is not None and job.duration - job.done + job.owed <= EPSILON:
                job.ended, job.since = now, None
                self.free += job.gpus
                del self.active[job.key]

    def _apply(self, policy: Policy, now: float) -> float:
        while True:
            decision = policy.decide(list(self.active.values()), self.free, now)
            for job in decision.stop:
                self._stop(job)
            for start in decision.start:
                self._start(start, now)
            if not decision.again:
                return decision.wake

    def _stop(self, job: SimulatedJob) -> None:
        assert job.since is not None
        job.since = None
        job.preemptions += 1
        job.owed += LOST_PER_PREEMPTION
        job.lost += LOST_PER_PREEMPTION * job.gpus
        self.free += job.gpus

    def _start(self, start: Start, now: float) -> None:
        job = start.job
        if job.gpus > self.free:
            raise RuntimeError(f"{job.key} needs {job.gpus} GPUs, {self.free} are free")
        job.since, job.probe, job.backfill = now, start.probe, start.backfill
        self.admitted_at[job.key] = now
        self.free -= job.gpus


def simulated(traced: Sequence[TracedJob], sigma: float, seed: int) -> list[SimulatedJob]:
    """Make the jobs of a trace, with claims and reports whose errors are drawn from `seed`."""
    draw = random.Random(seed)
    return [
        SimulatedJob(
            key=job.key, arrived=job.arrived, duration=job.duration, gpus=job.gpus,
            claim=job.duration * draw.lognormvariate(0.0, sigma), report_factor=draw.lognormvariate(0.0, REPORT_SIGMA),
        )
        for job in traced
    ]  # fmt: skip
