"""Make queue-replay.md and its pictures: the queue's policy on a public trace, beside what else could order the jobs.

    .venv/bin/python -m benchmarks.queue_replay_page philly.csv [--seeds 10]

The trace: Microsoft's Philly cluster, 2017, msr-fiddle/philly-traces (CC-BY-4.0), as a CSV with the columns timestamp,
duration, num_gpus, cluster. It takes some minutes.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from benchmarks.queue_replay import ENTRANTS, Row, replay, table
from benchmarks.replay.plot import Replayed, draw
from benchmarks.replay.trace import read_trace

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "queue-replay.md"
PICTURES = ROOT / "docs" / "reference" / "queue-replay"


@dataclass(frozen=True)
class Setting:
    """Which jobs, on how many GPUs."""

    title: str
    cluster: str | None
    capacity: int
    least: int = 1
    most: int = 128


SETTINGS = [
    Setting("Cluster ee9e8c, 128 GPUs", "ee9e8c", 128),
    Setting("Cluster ee9e8c, 160 GPUs", "ee9e8c", 160),
]

HEAD = """\
# The queue's policy on a public trace

Made by `python -m benchmarks.queue_replay_page TRACE.csv`. The trace is that of Microsoft's Philly cluster, 2017 (Jeon
et al., USENIX ATC 2019; data CC-BY-4.0, msr-fiddle/philly-traces). One setting alone, as text or JSON:
`python -m benchmarks.queue_replay TRACE.csv --cluster ee9e8c --capacity 128`; without a trace a small made-up one.

The jobs run in a simulated cluster of one pool, and `policy.gpu_queue.plan()`, the function that runs in production,
decides, with the same knobs in all settings. Until a job has run for ten minutes only its owner's claim is known, off
by a lognormal error of 1; then its own report, off by 5 %. Each preemption costs 420 seconds of all its GPUs.
Completion is from submission to end, delay is that without the job's own duration. Figures of the policies that read
claims or reports are means over {seeds} seeds.

*Airflow pool*: a pool of Airflow with as many slots as GPUs. *EASY backfill* and *SRSF* know every duration, which
nobody can. *2D-LAS*: least attained GPU time first, in doubling levels. *Static weight*: the smallest claimed GPU time
first.

![Share of jobs by delay](queue-replay/delays.svg)

![Jobs that wait or run](queue-replay/waiting.svg)
"""


def main(trace: Path, seeds: int) -> None:
    """Replay all settings, and write the page; the pictures are of the first one."""
    parts = [HEAD.format(seeds=seeds)]
    for number, setting in enumerate(SETTINGS):
        traced = read_trace(trace, setting.cluster, setting.least, setting.most)
        rows = [replay(entrant, traced, setting.capacity, 1.0, seeds) for entrant in ENTRANTS]
        if number == 0:
            draw([Replayed(row.policy, row.last) for row in rows], PICTURES, setting.title)
        parts.append(_part(setting, len(traced), rows))
    PAGE.write_text("\n".join(parts), encoding="utf-8")


def _part(setting: Setting, jobs: int, rows: list[Row]) -> str:
    worst = rows[0].worst
    lines = [
        f"\n## {setting.title}: {jobs:,} jobs\n",
        *table(rows),
        f"\nTrainops in its worst seed: mean {worst['mean_h']:.1f}, p99 {worst['p99_h']:.0f}, "
        f"max delay {worst['max_delay_h']:.0f} h, lost {100 * worst['lost_fraction']:.2f} %.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    main(given.trace, given.seeds)
