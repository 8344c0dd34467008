"""What a user could have instead of the queue's policy, and one that knows the future."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

from benchmarks.replay.engine import Decision, SimulatedJob, Start


def _waiting(jobs: Sequence[SimulatedJob]) -> list[SimulatedJob]:
    return sorted((job for job in jobs if job.since is None), key=lambda job: (job.arrived, job.key))


class Fifo:
    """Strictly first come, first served: nobody passes a job that waits."""

    name = "FIFO"

    def decide(self, jobs: Sequence[SimulatedJob], free: int, now: float) -> Decision:
        """Start from the head of the queue while it fits."""
        decision = Decision()
        for job in _waiting(jobs):
            if job.gpus > free:
                break
            free -= job.gpus
            decision.start.append(Start(job))
        return decision


class AirflowPool:
    """A pool of Airflow as it is: tasks of one priority weight by date, and whatever fits passes what does not."""

    name = "Airflow pool"

    def decide(self, jobs: Sequence[SimulatedJob], free: int, now: float) -> Decision:
        """Start all that fit, the oldest first."""
        decision = Decision()
        for job in _waiting(jobs):
            if job.gpus <= free:
                free -= job.gpus
                decision.start.append(Start(job))
        return decision


class EasyBackfill:
    """First come, first served; others pass if the first of the queue starts no later. Knows all durations."""

    name = "EASY backfill"

    def decide(self, jobs: Sequence[SimulatedJob], free: int, now: float) -> Decision:
        """Start the head while it fits, then who ends before the head can start, or needs none of its GPUs."""
        decision = Decision()
        waiting = _waiting(jobs)
        while waiting and waiting[0].gpus <= free:
            free -= waiting[0].gpus
            decision.start.append(Start(waiting.pop(0)))
        if not waiting:
            return decision
        running = [job for job in jobs if job.since is not None] + [start.job for start in decision.start]
        shadow, spare = self._reservation(waiting[0], running, free, now)
        for job in waiting[1:]:
            ends_before = now + job.left(now) <= shadow
            if job.gpus <= free and (ends_before or job.gpus <= spare):
                free -= job.gpus
                spare -= 0 if ends_before else job.gpus
                decision.start.append(Start(job))
        return decision

    @staticmethod
    def _reservation(head: SimulatedJob, running: list[SimulatedJob], free: int, now: float) -> tuple[float, int]:
        """When the head can start, and how many GPUs it leaves then."""
        for job in sorted(running, key=lambda item: item.left(now)):
            free += job.gpus
            if free >= head.gpus:
                return now + job.left(now), free - head.gpus
        return math.inf, 0


class Preemptive(ABC):
    """Runs the jobs of the smallest keys at every moment, and stops the others."""

    name: str

    @abstractmethod
    def key(self, job: SimulatedJob, now: float) -> float:
        """What a job is ordered by; the smallest runs first."""

    def decide(self, jobs: Sequence[SimulatedJob], free: int, now: float) -> Decision:
        """Fill the cluster in the order of the keys."""
        room = free + sum(job.gpus for job in jobs if job.since is not None)
        decision = Decision(wake=self.wake(jobs, now))
        for job in sorted(jobs, key=lambda item: (self.key(item, now), item.arrived, item.key)):
            if job.gpus <= room:
                room -= job.gpus
                if job.since is None:
                    decision.start.append(Start(job))
            elif job.since is not None:
                decision.stop.append(job)
        return decision

    def wake(self, jobs: Sequence[SimulatedJob], now: float) -> float:
        """Moment at which the order changes by itself."""
        return math.inf


class StaticWeight(Preemptive):
    """The smallest claim of GPU time first, with preemption: what a priority weight from an estimate gives."""

    name = "static weight + preemption"

    def key(self, job: SimulatedJob, now: float) -> float:
        """The claim, as it was submitted."""
        return job.claim * job.gpus


class ClairvoyantSrsf(Preemptive):
    """The smallest remaining GPU time first, with every duration known: nobody can have that."""

    name = "SRSF, clairvoyant"

    def key(self, job: SimulatedJob, now: float) -> float:
        """The GPU time that is really left."""
        return job.left(now) * job.gpus


class LeastAttained(Preemptive):
    """Least attained GPU time first (2D-LAS), in levels that double: no estimates at all."""

    name = "2D-LAS"
    FIRST_LEVEL = 3600.0
    """GPU-seconds of the first level."""

    def key(self, job: SimulatedJob, now: float) -> float:
        """The level, and within it whoever arrived first."""
        return self._level(job)

    def wake(self, jobs: Sequence[SimulatedJob], now: float) -> float:
        """When the next running job reaches another level."""
        ends = [
            now + (self.FIRST_LEVEL * 2 ** self._level(job)) / job.gpus - job.ran
            for job in jobs
            if job.since is not None
        ]
        return min((max(moment, now + 1.0) for moment in ends), default=math.inf)

    def _level(self, job: SimulatedJob) -> float:
        attained = job.ran * job.gpus
        return 0.0 if attained < self.FIRST_LEVEL else 1.0 + math.floor(math.log2(attained / self.FIRST_LEVEL) + 1e-9)
