"""`trainops check`: everything that can be known to be wrong before a run starts, one line per thing."""

from __future__ import annotations

import argparse
import functools
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from trainops.commands.moment import run_now
from trainops.config.dataset import load_dataset
from trainops.config.experiment import experiment_file, experiment_names
from trainops.config.gpu_pools import load_gpu_pools
from trainops.config.machines import check_accelerator
from trainops.config.resolve import resolve
from trainops.errors import ConfigError, TrainopsError, TransientError
from trainops.settings import Settings, config_names, configs_folder, environment_name, load_settings

REACH_TIMEOUT = 5.0
"""Seconds that a service may take to answer at all."""


@dataclass(frozen=True)
class Finding:
    """One thing that was checked."""

    kind: str
    name: str
    ok: bool
    problem: str = ""
    exit_code: int = 0


def add_parser(subparsers: Any) -> None:
    """Add the command's arguments."""
    parser = subparsers.add_parser(
        "check",
        help="say what is missing or wrong in environment, GPU pools, datasets and experiments",
        description="Say what is missing or wrong before a run starts. Exit code 2: a file must be changed; 1: a "
        "service cannot be reached, or something else failed.",
    )
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help="only these; all unless given")
    parser.add_argument("--env", metavar="NAME", help="environment; TRAINOPS_ENVIRONMENT, else local, unless given")
    parser.add_argument("--output", choices=["text", "json"], default="text", help="json: findings on stdout")


def run(args: argparse.Namespace) -> int:
    """Check, and return 0, or 2 when a file is wrong, or 1 when only something else is."""
    findings = []
    for finding in check(args.experiments, args.env):
        findings.append(finding)
        state = "ok     " if finding.ok else "problem"
        print(f"{state} {finding.kind} {finding.name}{finding.problem and ': '}{finding.problem}", file=sys.stderr)
    if args.output == "json":
        rows = [{key: value for key, value in asdict(finding).items() if key != "exit_code"} for finding in findings]
        print(json.dumps(rows, indent=2))
    return max((finding.exit_code for finding in findings), default=0)


def check(experiments: list[str], environment: str | None) -> Iterator[Finding]:
    """Check the environment, its services, the pools, the datasets and the experiments, in this order.

    :param experiments: only these experiments, and no datasets but theirs; all when empty.
    """
    for name in experiments:
        experiment_file(name)
    settings: list[Settings] = []
    yield _tried("environment", environment_name(environment), lambda: settings.append(load_settings(environment)))
    answered = True
    for finding in _services(settings[0]) if settings else ():
        answered = answered and finding.ok
        yield finding
    yield _tried("pools", "gpu_pools.yaml", _check_pools)
    yield from _ignored_files()
    for name in [] if experiments else config_names("datasets"):
        yield _tried("dataset", name, lambda name=name: load_dataset(name))  # type: ignore[misc]
    for name in experiments or experiment_names():
        if settings:
            look = functools.partial(_check_experiment, name, settings[0], services_answer=answered)
            yield _tried("experiment", name, look)


def _tried(kind: str, name: str, action: Callable[[], object]) -> Finding:
    try:
        action()
    except TrainopsError as error:
        return Finding(kind, name, ok=False, problem=str(error), exit_code=error.exit_code)
    return Finding(kind, name, ok=True)


def _services(settings: Settings) -> Iterator[Finding]:
    try:
        endpoints = settings.endpoints
    except ConfigError as error:
        # Nothing is wrong in a file: the local cloud is just not up.
        yield Finding("services", settings.name, ok=False, problem=str(error), exit_code=1)
        return
    addresses = {
        "vertex": settings.vertex_endpoint(settings.region),
        "storage": endpoints.storage or "https://storage.googleapis.com",
        "logging": settings.logging_endpoint(),
    }
    for name, address in addresses.items():
        yield _tried("service", f"{name} {address}", lambda address=address: _reach(address))  # type: ignore[misc]


def _reach(address: str) -> None:
    """Ask for anything: every answer, also 404, shows that the service is there."""
    import requests  # 0.1 s, and only this command asks

    try:
        requests.get(address, timeout=REACH_TIMEOUT, allow_redirects=False)
    except requests.RequestException as error:
        raise TransientError(f"cannot be reached: {type(error).__name__}: {error}") from error


def _ignored_files() -> Iterator[Finding]:
    """Tell of files that look like configs and are not read, for their ending."""
    for path in sorted(configs_folder().rglob("*.yml")):
        problem = f"{path}: only files that end in .yaml are read; rename it to {path.stem}.yaml"
        yield Finding("file", path.name, ok=False, problem=problem, exit_code=ConfigError.exit_code)


def _check_pools() -> None:
    pools = load_gpu_pools()
    for index, pool in enumerate(pools.pools):
        check_accelerator(pool.accelerator, source=pools.source, key=f"pools.{index}.accelerator")


def _check_experiment(name: str, settings: Settings, *, services_answer: bool) -> None:
    from trainops.steps.base_model import origins, with_base_model
    from trainops.steps.preflight import preflight  # reads files and packages the trainer

    plan = resolve(name, {}, run_now(name), settings)
    preflight(plan, settings)
    if services_answer:
        with_base_model(plan, settings)
    elif given := sorted(set(origins(plan).values())):
        # Nothing is known to be wrong in the file.
        raise TransientError(f"nobody could look for {', '.join(given)}: the services do not answer")
