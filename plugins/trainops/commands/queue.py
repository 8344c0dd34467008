"""`trainops queue`: who holds GPUs, who waits and why, and what people may change about it."""

from __future__ import annotations

import argparse
import getpass
import json
import socket
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from trainops.commands.queue_simulation import simulate
from trainops.commands.queue_table import rows_of, table
from trainops.config.priority import CLASSES, HIGHEST, LOWEST, class_name
from trainops.errors import ConfigError
from trainops.settings import load_settings
from trainops.steps.gpu_queue import GpuQueue, Tick
from trainops.steps.gpu_queue.orders import Order, PriorityOrder
from trainops.steps.services import Services


def add_parser(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser("queue", help="who holds GPUs, who waits and why; change priorities, hold, preempt")
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    shown = [parser, actions.add_parser("list", help="everybody who holds GPUs or waits for them (the default)")]
    why = actions.add_parser("why", help="why a job starts, runs, leaves or waits")
    priority = actions.add_parser("set-priority", help="another priority class, for a job that waits or runs")
    hold = actions.add_parser("hold", help="keep a job from starting until it is released")
    preempt = actions.add_parser("preempt", help="have a running job save its state, leave, and wait again")
    drain = actions.add_parser("drain", help="admit nobody to a pool any more; who runs there stays")
    release = actions.add_parser("release", help="take back a hold, a priority or a drain")
    adopt = actions.add_parser("adopt", help="make the quotas and policy of this gpu_pools.yaml those that count")
    simulation = actions.add_parser("simulate", help="what would happen if a run of an experiment came now")
    for one in (why, priority, hold, preempt):
        one.add_argument("key", metavar="KEY", help="job key, run key, or the beginning of one")
    drain.add_argument("key", metavar="POOL", help="name of a pool, such as NVIDIA_L4/us-central1/standard")
    release.add_argument("key", metavar="KEY|POOL")
    priority.add_argument("priority", metavar="PRIORITY", help=f"{', '.join(CLASSES)}, or {LOWEST} to {HIGHEST}")
    simulation.add_argument("experiment", metavar="EXPERIMENT")
    simulation.add_argument("--conf", metavar="JSON", default="{}", help="conf of the run, or @FILE that holds it")
    for one in (priority, hold, preempt, drain, release):
        one.add_argument("--why", default="", help="kept with the order, and told to whoever waits")
        one.add_argument("--by", default=None, help="who asks; else who is logged in here")
    for one in (*shown, why, simulation):
        one.add_argument("--output", choices=["text", "json"], default="text", help="json: for programs")
    for one in (*shown, why, priority, hold, preempt, drain, release, adopt, simulation):
        one.add_argument("--env", default=None, help="environment; else what TRAINOPS_ENVIRONMENT says")


def run(args: argparse.Namespace) -> int:
    """Show the queue, or change what stands ordered in it."""
    settings = load_settings(args.env)
    queue = Services(settings).queue
    if args.action == "simulate":
        return simulate(queue, settings, args)
    if args.action == "adopt":
        queue.adopt()
        print("the quotas and the policy of this gpu_pools.yaml count now; deployments with others admit nobody")
        return 0
    tick = queue.look()
    for problem in [*queue.unread, *filter(None, [tick.closed_to_us])]:
        print(f"warning: {problem}", file=sys.stderr)
    if args.action in {None, "list"}:
        return _list(tick, args)
    if args.action == "why":
        return _why(tick, args)
    print(_ORDERS[args.action](queue, tick, args))
    return 0


def _list(tick: Tick, args: argparse.Namespace) -> int:
    rows = rows_of(tick)
    print(json.dumps(rows, indent=2) if args.output == "json" else table(rows, tick))
    return 0


def _why(tick: Tick, args: argparse.Namespace) -> int:
    key = find_key(tick, args.key)
    row = next(row for row in rows_of(tick) if row["job_key"] == key)
    print(json.dumps(row, indent=2) if args.output == "json" else f"{key}: {row['reason']}")
    return 0


def _set_priority(queue: GpuQueue, tick: Tick, args: argparse.Namespace) -> str:
    key, number = find_key(tick, args.key), _priority(args.priority)
    order = PriorityOrder(**_order(args).model_dump(), priority=number)
    queue.orders.change_job(key, lambda now: now.ordered("priority", order))
    return f"{key} has priority {class_name(number)} from the next look at the queue on"


def _hold(queue: GpuQueue, tick: Tick, args: argparse.Namespace) -> str:
    key, order = find_key(tick, args.key), _order(args)
    queue.orders.change_job(key, lambda now: now.ordered("hold", order))
    if key in tick.ledger.leases:
        return f"{key} holds GPUs and goes on; it is held when it has left them (`trainops queue preempt {key}`)"
    return f"{key} is held; `trainops queue release {key}` lets it go on"


def _preempt(queue: GpuQueue, tick: Tick, args: argparse.Namespace) -> str:
    key = find_key(tick, args.key)
    asked = next(item for item in tick.made.asked if item.job_key == key)
    if asked.lease is None:
        raise ConfigError("it holds no GPUs", source="trainops queue", key="KEY", value=key)
    if not asked.preemptible:
        raise ConfigError(
            "its job cannot save its state when asked, or does not exist yet", source="trainops queue", key="KEY",
            value=key, next_step="cancel its task in Airflow instead, or wait until its job runs",
        )  # fmt: skip
    order = _order(args)
    queue.orders.change_job(key, lambda now: now.ordered("preempt", order))
    return f"{key} is asked to save its state and leave at the next look at the queue; it waits again after that"


def _drain(queue: GpuQueue, _tick: Tick, args: argparse.Namespace) -> str:
    pool, order = _pool(queue, args.key), _order(args)
    queue.orders.change_pool(pool, lambda now: now.drained(order))
    return f"{pool} is drained: nobody is admitted; `trainops queue release {pool}` opens it again"


def _release(queue: GpuQueue, tick: Tick, args: argparse.Namespace) -> str:
    by = _order(args)
    if "/" in args.key:
        pool = _pool(queue, args.key)
        queue.orders.change_pool(pool, lambda now: now.released(by))
        return f"{pool} is open"
    key = find_key(tick, args.key)
    queue.orders.change_job(key, lambda now: now.released(by))
    return f"{key} is released: no hold, no other priority than its own"


_ORDERS: dict[str, Callable[[GpuQueue, Tick, argparse.Namespace], str]] = {
    "set-priority": _set_priority, "hold": _hold, "preempt": _preempt, "drain": _drain, "release": _release,
}  # fmt: skip


def find_key(tick: Tick, text: str) -> str:
    """The one job key that is, or begins with, `text`.

    :raises ConfigError: there is none, or there are several.
    """
    keys = sorted(item.job_key for item in tick.made.asked)
    found = [key for key in keys if key == text] or [key for key in keys if key.startswith(text)]
    if len(found) == 1:
        return found[0]
    problem = "several job keys begin so" if found else "nobody of this key waits or holds GPUs"
    raise ConfigError(
        problem, source="trainops queue", key="KEY", value=text, allowed=found or keys,
        next_step="`trainops queue list` shows all",
    )  # fmt: skip


def _pool(queue: GpuQueue, name: str) -> str:
    if name not in queue.quotas:
        raise ConfigError("no such GPU pool", source="trainops queue", key="POOL", value=name, allowed=queue.quotas)
    return name


def _priority(text: str) -> int:
    number = CLASSES.get(text, int(text) if text.isdecimal() else -1)
    if not LOWEST <= number <= HIGHEST:
        raise ConfigError(
            f"a priority is a class or a number from {LOWEST} to {HIGHEST}", source="trainops queue", key="PRIORITY",
            value=text, allowed=CLASSES,
        )  # fmt: skip
    return number


def _order(args: argparse.Namespace) -> Order:
    by = args.by or f"{getpass.getuser()}@{socket.gethostname()}"
    return Order(by=by, at=datetime.now(UTC), why=args.why)
