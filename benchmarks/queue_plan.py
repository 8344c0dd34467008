"""What one plan of the GPU queue costs, by the number of requests, beside a sort of them by priority and date.

python -m benchmarks.queue_plan [--output text|json]
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from trainops.policy.gpu_queue import Knobs, Lease, Request, explain, plan

SIZES = (100, 1_000, 10_000)
POOLS = {f"NVIDIA_L4/region-{number}/standard": 128 for number in range(4)}
NOW = 1e9
REPEATS = 5


def requests(count: int) -> list[Request]:
    """Requests of all ages and sizes; the first hold the pools."""
    draw = random.Random(0)
    free = dict(POOLS)
    made = []
    for number in range(count):
        pool, gpus = draw.choice(list(POOLS)), draw.choice([1, 1, 2, 4, 8, 16])
        ran = draw.choice([0.0, 0.0, 3600.0, 1e5])
        lease = Lease(gpus={pool: gpus}, since=NOW - ran) if ran and free[pool] >= gpus else None
        free[pool] -= gpus if lease else 0
        made.append(
            Request(
                job_key=f"exp-20261201t{number:06d}-submit_training", candidates=({pool: gpus},), ran=ran, lease=lease,
                arrived=NOW - ran - draw.uniform(0, 4e6), priority=draw.choice([25, 50, 50, 75]),
                remaining=draw.lognormvariate(9, 1.5) if ran else None,
            )
        )  # fmt: skip
    return made


def seconds(call: Callable[[], Any]) -> float:
    """The median time of a call."""
    spent = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        call()
        spent.append(time.perf_counter() - began)
    return statistics.median(spent)


def measure(count: int) -> dict[str, float]:
    """Measure all three for so many requests."""
    asked, knobs = requests(count), Knobs()
    made = plan(asked, POOLS, NOW, knobs)
    return {
        "requests": count,
        "plan": seconds(lambda: plan(asked, POOLS, NOW, knobs)),
        "explain": seconds(lambda: explain(made, asked, POOLS, knobs)),
        "sort": seconds(lambda: sorted(asked, key=lambda item: (-item.priority, item.arrived, item.job_key))),
    }


def main(output: str) -> int:
    """Measure and print."""
    rows = [measure(count) for count in SIZES]
    if output == "json":
        print(json.dumps(rows))
        return 0
    print("| requests | plan | a sentence for each | plan, as so many sorts |\n|---|---|---|---|")
    for row in rows:
        times = " | ".join(f"{1000 * row[key]:.1f} ms" for key in ("plan", "explain"))
        print(f"| {row['requests']:,} | {times} | {row['plan'] / row['sort']:.0f} |")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", choices=["text", "json"], default="text")
    raise SystemExit(main(parser.parse_args().output))
