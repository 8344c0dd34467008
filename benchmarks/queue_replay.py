"""Replay a trace of jobs under the GPU queue's own `plan()`, beside what else could order them.

    python -m benchmarks.queue_replay [TRACE.csv] [--cluster ID] --capacity C [--min-gpus A] [--max-gpus B]
        [--sigma S] [--seeds N] [--output text|json] [--plot FOLDER]

A trace is a CSV with the columns timestamp, duration (s), num_gpus, cluster; without one a small made-up trace is
replayed. Claims of the owners are off by a lognormal error of standard deviation S; ten minutes after its start a job
reports how long it needs, off by 5 %; each preemption costs 420 s of all the job's GPUs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.replay.engine import Cluster, Policy, SimulatedJob, simulated
from benchmarks.replay.figures import Figures, judge, mean_and_worst
from benchmarks.replay.ours import TrainopsQueue
from benchmarks.replay.peers import AirflowPool, ClairvoyantSrsf, EasyBackfill, Fifo, LeastAttained, StaticWeight
from benchmarks.replay.trace import TracedJob, made_up_trace, read_trace

from trainops.policy.gpu_queue import Knobs

MADE_UP_CAPACITY = 32
"""GPUs for the made-up trace, which keeps them busy."""


@dataclass(frozen=True)
class Entrant:
    """A policy, and whether its figures depend on the seed."""

    make: Callable[[int], Policy]
    seeded: bool = False


ENTRANTS = [
    Entrant(lambda capacity: TrainopsQueue(capacity, Knobs()), seeded=True),
    Entrant(lambda _: Fifo()),
    Entrant(lambda _: AirflowPool()),
    Entrant(lambda _: EasyBackfill()),
    Entrant(lambda _: LeastAttained()),
    Entrant(lambda _: StaticWeight(), seeded=True),
    Entrant(lambda _: ClairvoyantSrsf()),
]


@dataclass(frozen=True)
class Row:
    """One policy over all seeds; `last` is the replay of the last seed."""

    policy: str
    mean: dict[str, float]
    worst: dict[str, float]
    last: list[SimulatedJob]

    def as_json(self) -> dict[str, Any]:
        """The row as `--output json` prints it."""
        return {"policy": self.policy, **self.mean, "worst_seed": self.worst}


def main(arguments: argparse.Namespace) -> int:
    """Replay and print."""
    traced, capacity = _trace(arguments)
    rows = [replay(entrant, traced, capacity, arguments.sigma, arguments.seeds) for entrant in ENTRANTS]
    if arguments.plot is not None:
        from benchmarks.replay.plot import Replayed, draw

        title = f"{arguments.cluster or 'all'}, {capacity} GPUs"
        for path in draw([Replayed(row.policy, row.last) for row in rows], arguments.plot, title):
            print(f"drew {path}", file=sys.stderr)
    if arguments.output == "json":
        print(json.dumps([row.as_json() for row in rows], indent=1))
        return 0
    print(f"{len(traced):,} jobs on {capacity} GPUs, sigma {arguments.sigma:g}, {arguments.seeds} seeds\n")
    print("\n".join(table(rows)))
    return 0


def replay(entrant: Entrant, traced: Sequence[TracedJob], capacity: int, sigma: float, seeds: int) -> Row:
    """Replay a trace under a policy, once for each seed that its figures depend on, on all cores."""
    number = ENTRANTS.index(entrant)
    count = seeds if entrant.seeded else 1
    each: list[Figures] = []
    jobs: list[SimulatedJob] = []
    name = entrant.make(capacity).name
    with ProcessPoolExecutor() as pool:
        replays = [pool.submit(_replayed, number, traced, capacity, sigma, seed) for seed in range(count)]
        for seed, one in enumerate(replays):
            jobs = one.result()
            each.append(judge(jobs, capacity))
            print(f"{name}, seed {seed}: mean {each[-1].mean_h:.1f} h", file=sys.stderr)
    mean, worst = mean_and_worst(each)
    return Row(name, mean, worst, jobs)


def _replayed(entrant: int, traced: Sequence[TracedJob], capacity: int, sigma: float, seed: int) -> list[SimulatedJob]:
    return Cluster(capacity, simulated(traced, sigma, seed)).replay(ENTRANTS[entrant].make(capacity))


def table(rows: Sequence[Row]) -> list[str]:
    """Lines of a Markdown table."""
    lines = [
        "| policy | mean | p95 | p99 | max delay | mean delay of 8 GPUs and more | utilisation | preemptions "
        "| most of a job | GPU time lost |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        of = Figures(**row.mean)
        lines.append(
            f"| {row.policy} | {of.mean_h:.1f} h | {of.p95_h:.0f} h | {of.p99_h:.0f} h | {of.max_delay_h:.0f} h "
            f"| {of.big_mean_delay_h:.0f} h | {100 * of.utilisation:.1f} % | {of.preemptions:,.0f} "
            f"| {of.max_preemptions_per_job:.0f} | {100 * of.lost_fraction:.2f} % |"
        )
    return lines


def _trace(arguments: argparse.Namespace) -> tuple[list[TracedJob], int]:
    if arguments.trace is None:
        return made_up_trace(), arguments.capacity or MADE_UP_CAPACITY
    if arguments.capacity is None:
        raise SystemExit("--capacity: how many GPUs the cluster has")
    most = min(arguments.max_gpus or arguments.capacity, arguments.capacity)
    return read_trace(arguments.trace, arguments.cluster, arguments.min_gpus, most), arguments.capacity


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", nargs="?", type=Path, help="CSV file; without it a small made-up trace")
    parser.add_argument("--cluster", help="value of the column cluster; default: all")
    parser.add_argument("--capacity", type=int, help="GPUs of the cluster")
    parser.add_argument("--min-gpus", type=int, default=1, help="leave out smaller jobs")
    parser.add_argument("--max-gpus", type=int, help="leave out larger jobs; default: the capacity")
    parser.add_argument("--sigma", type=float, default=1.0, help="error of the claims, of their logarithm")
    parser.add_argument("--seeds", type=int, default=10, help="draws of these errors")
    parser.add_argument("--output", choices=["text", "json"], default="text")
    parser.add_argument("--plot", type=Path, metavar="FOLDER", help="draw pictures into a folder")
    raise SystemExit(main(parser.parse_args()))
