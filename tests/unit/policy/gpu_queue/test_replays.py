"""What the policy must do with whole streams of jobs, in the simulated cluster of `benchmarks/replay`."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable

import pytest
from benchmarks.replay.engine import Cluster, SimulatedJob, simulated
from benchmarks.replay.figures import Figures, judge
from benchmarks.replay.ours import TrainopsQueue
from benchmarks.replay.peers import AirflowPool, Fifo
from benchmarks.replay.trace import TracedJob, made_up_trace

from trainops.policy.gpu_queue import Knobs

HOUR = 3600.0
Claims = Callable[[int, float], float]


def replayed(traced: list[TracedJob], capacity: int, claims: Claims | None = None) -> list[SimulatedJob]:
    """The jobs as they ended under the policy.

    :param claims: what the owner of the job of that number and duration says instead of an honest guess.
    """
    jobs = simulated(traced, 1.0, 0)
    for number, job in enumerate(jobs):
        job.claim = job.claim if claims is None else claims(number, job.duration)
    return Cluster(capacity, jobs).replay(TrainopsQueue(capacity, Knobs()))


def delay_h(job: SimulatedJob) -> float:
    return (job.ended - job.arrived - job.duration) / HOUR


def stream(seed: int, *, load: float, capacity: int, hours: float) -> list[TracedJob]:
    """Jobs of one GPU and half an hour on average that take that share of the cluster."""
    draw = random.Random(seed)
    moment = 0.0
    jobs: list[TracedJob] = []
    while moment < hours * HOUR:
        moment += draw.expovariate(load * capacity / (0.5 * HOUR))
        jobs.append(TracedJob(f"s{len(jobs):05d}", moment, draw.uniform(0.1, 0.9) * HOUR, 1))
    return jobs


def test_a_gang_of_all_gpus_is_not_kept_waiting_by_an_endless_stream_of_small_jobs() -> None:
    gang = TracedJob("gang", 24 * HOUR, 2 * HOUR, 8)
    jobs = {job.key: job for job in replayed([*stream(1, load=0.8, capacity=8, hours=72), gang], 8)}
    pool = {job.key: job for job in simulated([*stream(1, load=0.8, capacity=8, hours=72), gang], 1.0, 0)}
    Cluster(8, list(pool.values())).replay(AirflowPool())
    assert delay_h(jobs["gang"]) < 24  # it needs two hours, and is overdue after twenty; the pool leaves it to the end
    assert delay_h(pool["gang"]) > 47
    others = [delay_h(job) for key, job in jobs.items() if key != "gang"]
    assert statistics.fmean(others) < 1.0


def test_short_jobs_do_not_wait_for_the_end_of_one_that_holds_all_gpus() -> None:
    long = TracedJob("long", 0.0, 200 * HOUR, 8)
    short = [TracedJob(f"short-{number}", (10 + 5 * number) * HOUR, 0.25 * HOUR, 1) for number in range(20)]
    jobs = replayed([long, *short], 8)
    delays = [delay_h(job) for job in jobs if job.key != "long"]
    assert max(delays) < 0.1
    assert next(job for job in jobs if job.key == "long").preemptions <= 20


@pytest.mark.parametrize(
    "claims",
    [lambda _number, _duration: HOUR, lambda number, duration: duration / 100 if number % 2 else duration],
    ids=["all claims equal", "half of the claims false"],
)
def test_nobody_gains_by_what_is_claimed(claims: Claims) -> None:
    honest = judge(replayed(made_up_trace(), 48), 48)
    assert judge(replayed(made_up_trace(), 48, claims), 48) == honest


def test_jobs_that_fail_early_make_nobody_wait_longer_than_first_come_first_served() -> None:
    draw = random.Random(2)
    traced = [
        TracedJob(job.key, job.arrived, job.duration * (draw.random() if draw.random() < 0.3 else 1.0), job.gpus)
        for job in made_up_trace()
    ]
    ours = judge(replayed(traced, 48), 48)
    fifo = simulated(traced, 1.0, 0)
    Cluster(48, fifo).replay(Fifo())
    assert ours.mean_h < judge(fifo, 48).mean_h
    assert ours.lost_fraction < 0.006


def test_a_replay_of_the_same_seed_is_the_same() -> None:
    first, second = (judge(replayed(made_up_trace(seed=3), 48), 48) for _ in range(2))
    assert first == second
    assert isinstance(first, Figures)


def test_the_made_up_trace_keeps_the_cluster_busy_and_every_job_ends_once() -> None:
    jobs = replayed(made_up_trace(), 48)
    assert all(job.ended >= job.arrived + job.duration - 1e-3 for job in jobs)
    assert statistics.fmean(job.gpus for job in jobs) > 1
