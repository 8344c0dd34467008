"""`trainops queue simulate`: what would happen if a run of an experiment came now."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from typing import Any

from trainops.commands.moment import run_now
from trainops.commands.plan import pools_of, read_conf, training_preview
from trainops.config.machines import preview
from trainops.config.resolve import resolve
from trainops.policy import gpu_queue
from trainops.settings import Settings
from trainops.steps.gpu_queue import GpuQueue, Tick

KEY = "simulated"


def simulate(queue: GpuQueue, settings: Settings, args: argparse.Namespace) -> int:
    """Plan as if the run asked for its GPUs now, and print what changes; nothing is written.

    :raises ConfigError: as a run would be refused.
    """
    tick = queue.look()
    request = _request(queue, settings, args)
    told = _told(tick, request)
    print(json.dumps(told, indent=2) if args.output == "json" else _text(told))
    return 0


def _request(queue: GpuQueue, settings: Settings, args: argparse.Namespace) -> gpu_queue.Request:
    plan = resolve(args.experiment, read_conf(args.conf), run_now(args.experiment), settings)
    job = training_preview(plan, settings)
    others = [preview(item.training_input, settings) for item in plan.candidates if not item.after_spot]
    return gpu_queue.Request(
        job_key=KEY, candidates=tuple(pools_of(item, queue.pools) for item in (job, *others)),
        arrived=datetime.now(UTC).timestamp(), priority=plan.priority,
        estimate=None if plan.estimate_hours is None else plan.estimate_hours * 3600,
    )  # fmt: skip


def _told(tick: Tick, request: gpu_queue.Request) -> dict[str, Any]:
    if not sum(request.candidates[0].values()):
        why = "it needs no GPUs and does not queue"
        return {"gpus": {}, "candidates": [], "reason": why, "asked_to_leave": [], "now_later": []}
    asked = [*tick.made.asked, request]
    closed = tick.made.view.closed
    now = max(tick.made.view.now.timestamp(), request.arrived)
    made = gpu_queue.plan(asked, tick.quotas, now, tick.knobs, closed=closed)
    without = gpu_queue.plan(tick.made.asked, tick.quotas, now, tick.knobs, closed=closed)
    reasons = gpu_queue.explain(made, asked, tick.quotas, tick.knobs, closed=closed)
    left_before = {item.job_key for item in without.preemptions}
    return {
        "gpus": dict(request.candidates[0]),
        "candidates": [dict(gpus) for gpus in request.candidates],
        "reason": reasons[KEY],
        "asked_to_leave": [item.job_key for item in made.preemptions if item.job_key not in left_before],
        "now_later": sorted(without.granted.keys() - made.granted.keys()),
    }


def _text(told: dict[str, Any]) -> str:
    choices = [" and ".join(f"{count} x {pool}" for pool, count in gpus.items()) for gpus in told["candidates"]]
    gpus = ", else ".join(choices) or "no GPUs"
    lines = [f"it asks for {gpus}", told["reason"]]
    if told["asked_to_leave"]:
        lines.append(f"asked to save their state and leave: {', '.join(told['asked_to_leave'])}")
    later = [key for key in told["now_later"] if key not in told["asked_to_leave"]]
    if later:
        lines.append(f"would start now, and would not with it: {', '.join(later)}")
    return "\n".join(lines)
