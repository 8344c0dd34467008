"""What a replay is judged by."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from benchmarks.replay.engine import SimulatedJob

HOUR = 3600.0
BIG = 8
"""GPUs from which on a job counts as big."""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Completion time is the time from submission to end; delay is that without the job's own duration. Hours."""

    mean_h: float
    p95_h: float
    p99_h: float
    max_delay_h: float
    big_mean_delay_h: float
    utilisation: float
    """Share of all GPU time, from the first arrival to the last end, in which jobs ran for the first time."""
    preemptions: float
    max_preemptions_per_job: float
    lost_fraction: float
    """GPU time lost by preemptions, as a share of the time that the jobs needed."""


def judge(jobs: Sequence[SimulatedJob], capacity: int) -> Figures:
    """Judge jobs that have all ended."""
    completion = sorted((job.ended - job.arrived) / HOUR for job in jobs)
    delays = {job.key: (job.ended - job.arrived - job.duration) / HOUR for job in jobs}
    needed = sum(job.duration * job.gpus for job in jobs)
    span = max(job.ended for job in jobs) - min(job.arrived for job in jobs)
    return Figures(
        mean_h=statistics.fmean(completion),
        p95_h=percentile(completion, 0.95),
        p99_h=percentile(completion, 0.99),
        max_delay_h=max(delays.values()),
        big_mean_delay_h=statistics.fmean([delays[job.key] for job in jobs if job.gpus >= BIG] or [0.0]),
        utilisation=needed / (span * capacity),
        preemptions=float(sum(job.preemptions for job in jobs)),
        max_preemptions_per_job=float(max(job.preemptions for job in jobs)),
        lost_fraction=sum(job.lost for job in jobs) / needed,
    )


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` of the ordered values lie, interpolated between neighbours."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def mean_and_worst(each: Sequence[Figures]) -> tuple[dict[str, float], dict[str, float]]:
    """The mean over the seeds, and the figures of the seed with the largest mean completion time."""
    rows = [asdict(item) for item in each]
    worst = max(each, key=lambda item: item.mean_h)
    return {name: statistics.fmean(row[name] for row in rows) for name in rows[0]}, asdict(worst)
