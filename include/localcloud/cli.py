"""The command line: `python -m localcloud up | down | status | demo | env | airflow`."""

from __future__ import annotations

import argparse
import json
import logging
import os
import shlex
import sys
from collections.abc import Callable, Sequence

from rich.console import Console

from localcloud.airflow_environment import airflow_settings
from localcloud.errors import LocalCloudError, UsageError
from localcloud.files import read_json
from localcloud.home import Home
from localcloud.lifecycle import current_state, start_supervisor, stop, wait_until_ready
from localcloud.process import clean_environment
from localcloud.progress import UpProgress, components_table

errors = Console(stderr=True, highlight=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 done, 1 failed, 2 the input was refused."""
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if rest and options.command != "airflow":
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        home = Home.locate(options.root, options.dags)
        return _run(home, options)
    except LocalCloudError as error:
        errors.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
        return error.exit_code
    except KeyboardInterrupt:
        return 130


def _run(home: Home, options: argparse.Namespace) -> int:
    command: Callable[[Home, argparse.Namespace], int] = options.run
    return command(home, options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="localcloud", description="Stand-ins for Google Cloud and a whole Airflow, on 127.0.0.1."
    )
    parser.add_argument("--root", help="folder of the project (default: this clone)")
    parser.add_argument("--dags", help="folder of the DAG files (default: dags/ of the project)")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    up = commands.add_parser("up", help="start everything and wait until it is healthy")
    up.add_argument("--foreground", action="store_true", help="supervise in this process until TERM or Ctrl-C")
    up.set_defaults(run=_up)
    down = commands.add_parser("down", help="stop everything; data stays")
    down.add_argument("--purge", action="store_true", help="delete the data too")
    down.set_defaults(run=_down)
    commands.add_parser("status", help="show components, addresses and login").set_defaults(run=_status)
    commands.add_parser("env", help="print `export K=V` lines for the airflow command line").set_defaults(run=_env)
    airflow = commands.add_parser("airflow", help="run the airflow command line against it", add_help=False)
    airflow.add_argument("arguments", nargs=argparse.REMAINDER)
    airflow.set_defaults(run=_airflow)
    demo = commands.add_parser("demo", help="train a small language model, from trigger to promotion")
    demo.add_argument("--conf", default="{}", help="JSON for the run (default: {})")
    demo.add_argument("--experiment", default="stdlib_tiny", help="experiment to run (default: stdlib_tiny)")
    demo.set_defaults(run=_demo)
    return parser


def _up(home: Home, options: argparse.Namespace) -> int:
    if options.foreground:
        from localcloud.supervisor import Supervisor

        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
        logging.getLogger("httpx").setLevel(logging.WARNING)
        home.check()
        Supervisor(home).run()
        return 0
    bring_up(home, Console(highlight=False))
    return 0


def bring_up(home: Home, console: Console) -> None:
    """Start what does not run, show the progress, print addresses and login; raises LocalCloudError."""
    start_supervisor(home)
    try:
        with UpProgress(console) as progress:
            state = wait_until_ready(home, progress.show)
    except LocalCloudError:
        stop(home)  # half a local cloud serves nobody
        raise
    slowest = max((one.took or 0.0, one.name) for one in state.components)
    console.print(f"local cloud is up (slowest: {slowest[1]}, {slowest[0]:.0f} s)", markup=False)
    _print_endpoints(home, console)


def _print_endpoints(home: Home, console: Console) -> None:
    endpoints = read_json(home.endpoints_file) or {}
    login = f"{endpoints.get('airflow_user')} / {endpoints.get('airflow_password')}"
    lines = [
        f"  Airflow  {endpoints.get('airflow')}   login {login}",
        f"  Vertex   {endpoints.get('vertex')}",
        f"  Storage  {endpoints.get('storage')}",
        f"  logs     {home.logs}",
    ]
    console.print("\n".join(lines), markup=False, soft_wrap=True)


def _down(home: Home, options: argparse.Namespace) -> int:
    was_up = current_state(home) is not None
    killed = stop(home, purge=options.purge)
    note = f", {killed} left-over processes were killed" if killed else ""
    Console(highlight=False).print(("stopped" if was_up or killed else "nothing was running") + note)
    return 0


def _status(home: Home, _: argparse.Namespace) -> int:
    console = Console(highlight=False)
    state = current_state(home)
    if state is None:
        from localcloud.leftovers import find_leftovers

        leftovers = len(find_leftovers(home))
        left = f"; {leftovers} processes are left over, `down` ends them" if leftovers else ""
        console.print(f"not running{left}")
        return 1
    console.print(components_table(state))
    _print_endpoints(home, console)
    return 0


def _env(home: Home, _: argparse.Namespace) -> int:
    for key, value in airflow_settings(home).items():
        sys.stdout.write(f"export {key}={shlex.quote(value)}\n")
    return 0


def _airflow(home: Home, options: argparse.Namespace) -> int:
    os.chdir(home.root)
    environment = clean_environment() | airflow_settings(home)
    os.execve(sys.executable, [sys.executable, "-m", "airflow", *options.arguments], environment)


def _demo(home: Home, options: argparse.Namespace) -> int:
    from localcloud.demo import Demo

    try:
        conf = json.loads(options.conf)
    except ValueError as error:
        raise UsageError(f"--conf is not JSON: {error}; for example --conf '{{\"steps\": 300}}'") from error
    if not isinstance(conf, dict):
        raise UsageError("--conf must be a JSON object, for example --conf '{\"steps\": 300}'")
    console = Console(highlight=False)
    bring_up(home, console)
    return Demo(home, console, options.experiment, conf).run()
