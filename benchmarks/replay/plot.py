"""Pictures of a replay: how long jobs were delayed, and how many GPUs were waited for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from benchmarks.replay.engine import SimulatedJob
from matplotlib.figure import Figure

HOUR, DAY = 3600.0, 86400.0
OURS = "Trainops"
COLOURS = ["#0b6e4f", "#b0b0b0", "#d1495b", "#8d6a9f", "#edae49", "#30638e", "#000000"]
"""Ours first; the others in the order of the table."""


@dataclass(frozen=True)
class Replayed:
    """One policy's replay."""

    policy: str
    jobs: Sequence[SimulatedJob]


def draw(rows: Sequence[Replayed], folder: Path, title: str) -> list[Path]:
    """Draw all pictures as SVG, the same bytes for the same figures, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("SOURCE_DATE_EPOCH", "0")
    mpl.rcParams["svg.hashsalt"] = "trainops"
    return [_save(delays(rows, title), folder / "delays.svg"), _save(waiting(rows, title), folder / "waiting.svg")]


def delays(rows: Sequence[Replayed], title: str) -> Figure:
    """Share of the jobs that were delayed by no more than so long."""
    figure, axes = _figure(f"{title}: share of jobs by delay")
    for row, colour in zip(rows, COLOURS, strict=False):
        hours = sorted(max(0.01, (job.ended - job.arrived - job.duration) / HOUR) for job in row.jobs)
        shares = [(place + 1) / len(hours) for place in range(len(hours))]
        axes.step(hours, shares, where="post", label=row.policy, color=colour, linewidth=_width(row))
    axes.set(
        xscale="log",
        xlabel="delay: hours in which a job did not run, or repeated steps",
        ylabel="share of jobs",
        ylim=(0, 1),
    )
    axes.legend(loc="lower right", frameon=False)
    return figure


def waiting(rows: Sequence[Replayed], title: str) -> Figure:
    """Jobs that were there and had not ended, over time: what a person sees of a queue."""
    figure, axes = _figure(f"{title}: jobs in the system")
    begin = min(job.arrived for job in rows[0].jobs)
    for row, colour in zip(rows, COLOURS, strict=False):
        changes = sorted([(job.arrived, 1) for job in row.jobs] + [(job.ended, -1) for job in row.jobs])
        days, counts, count = [], [], 0
        for moment, change in changes:
            count += change
            days.append((moment - begin) / DAY)
            counts.append(count)
        axes.step(days, counts, where="post", label=row.policy, color=colour, linewidth=_width(row))
    axes.set(xlabel="days", ylabel="jobs that wait or run")
    axes.legend(loc="upper right", frameon=False)
    return figure


def _figure(title: str) -> tuple[Figure, Any]:
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, loc="left")
    axes.grid(visible=True, alpha=0.3)
    return figure, axes


def _width(row: Replayed) -> float:
    return 2.2 if row.policy == OURS else 1.1


def _save(figure: Figure, path: Path) -> Path:
    figure.savefig(path, metadata={"Date": None})
    return path
