"""Jobs of a trace: when each was submitted, how long it ran, on how many GPUs."""

from __future__ import annotations

import csv
import random
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

COLUMNS = ("timestamp", "duration", "num_gpus", "cluster")


@dataclass(frozen=True, slots=True)
class TracedJob:
    """One line of a trace; times are seconds."""

    key: str
    arrived: float
    duration: float
    gpus: int


def read_trace(path: Path, cluster: str | None, least: int, most: int) -> list[TracedJob]:
    """Read the jobs of a cluster (None: of all) that take between `least` and `most` GPUs, in order of arrival.

    :raises SystemExit: when the file is missing or lacks a column, or no job is left.
    """
    if not path.is_file():
        raise SystemExit(f"{path}: no such trace; name a CSV file with the columns {', '.join(COLUMNS)}")
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        lacking = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
        if lacking:
            raise SystemExit(f"{path}: no column {lacking[0]}; its columns: {', '.join(reader.fieldnames or ())}")
        jobs = [_job(number, row) for number, row in enumerate(reader) if cluster in {None, row["cluster"]}]
    jobs = sorted((job for job in jobs if least <= job.gpus <= most), key=lambda job: (job.arrived, job.key))
    if not jobs:
        raise SystemExit(f"{path}: no job of cluster {cluster or '(any)'} takes {least} to {most} GPUs")
    return jobs


def _job(number: int, row: dict[str, str]) -> TracedJob:
    moment = datetime.fromisoformat(row["timestamp"]).replace(tzinfo=UTC)
    return TracedJob(f"{number:06d}", moment.timestamp(), float(row["duration"]), int(row["num_gpus"]))


def made_up_trace(seed: int = 0, jobs: int = 400, days: float = 20.0) -> list[TracedJob]:
    """Make a small trace shaped as real ones: most jobs are short and small, most GPU time is in few long ones."""
    draw = random.Random(seed)
    arrivals = sorted(draw.uniform(0, days * 86400) for _ in range(jobs))
    sizes = draw.choices([1, 2, 4, 8, 16, 32], weights=[45, 15, 15, 15, 7, 3], k=jobs)
    return [
        TracedJob(f"{number:06d}", arrived, min(30 * 86400.0, draw.lognormvariate(8.7, 1.8)), gpus)
        for number, (arrived, gpus) in enumerate(zip(arrivals, sizes, strict=True))
    ]
