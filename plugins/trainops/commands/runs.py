"""`trainops runs`: what ran, and the story of one run."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from trainops.settings import load_settings
from trainops.steps.record_store import records_below
from trainops.steps.run_story import find_run, run_keys, state, story
from trainops.steps.services import Services


def add_parser(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser("runs", help="what ran, and the story of one run")
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    listed = actions.add_parser("list", help="all runs, oldest first (the default)")
    shown = actions.add_parser("show", help="everything about one run: jobs, attempts, result, decision, story")
    shown.add_argument("run_key", metavar="RUN_KEY")
    for one in (parser, listed, shown):
        one.add_argument("--output", choices=["text", "json"], default="text", help="json: for programs")
        one.add_argument("--env", default=None, help="environment; else what TRAINOPS_ENVIRONMENT says")


def run(args: argparse.Namespace) -> int:
    """List runs, or tell the story of one."""
    services = Services(load_settings(args.env))
    if args.action == "show":
        folder = find_run(services.storage, services.settings, args.run_key)
        told = story(services.storage, folder)
        print(json.dumps(told, indent=2) if args.output == "json" else _as_text(told))
        return 0
    rows = [_row(services, experiment, key) for experiment, key in run_keys(services.storage, services.settings)]
    if args.output == "json":
        print(json.dumps(rows, indent=2))
        return 0
    for row in rows:
        print(f"{row['run_key']:<64} {row['state']:<12} attempts {row['attempts']}")
    if not rows:
        print("no runs yet", file=sys.stderr)
    return 0


def _row(services: Services, experiment: str, run_key: str) -> dict[str, Any]:
    folder = f"{services.settings.work}/runs/{experiment}/{run_key}"
    records = [store.load() for store in records_below(services.storage, folder)]
    attempts = sum(len(record.attempts) for record in records)
    return {"run_key": run_key, "experiment": experiment, "state": state(records), "attempts": attempts}


def _as_text(told: dict[str, Any]) -> str:
    lines = [f"{told['run_key']}: {told['state']}"]
    for job in told["jobs"]:
        lines.append(f"  {job['task']}: {job['state']}, attempt {job['attempts']}, {job['job_name'] or 'no job'}")
        if job["gpu_hours"]:
            lines.append(f"    {job['gpu_hours']:.2f} GPU hours, {job['usd']:,.2f} USD by the price list")
        if job["message"]:
            lines.append(f"    {job['message']}")
    result, decision = told["result"], told["decision"]
    if result:
        lines.append(f"  evaluation loss {result.get('eval_loss_before')} -> {result.get('eval_loss')}")
    if decision:
        lines.append(f"  decision: {decision.get('reason')}")
    if told["promoted"]:
        lines.append(f"  promoted: {told['promoted']}")
    lines.append("story:")
    for line in told["story"]:
        why = f" ({line['why']})" if line["why"] else ""
        lines.append(f"  {line['at'][:19]} {line['task']}: {line['by']}: {line['what']}{why}")
    return "\n".join(lines)
