"""What a thousand runs that wait at once cost in one triggerer process, beside the Google provider's trigger.

Both triggers run as in Airflow's triggerer, all in one event loop of a plain process, against the same servers on the
loopback, one after the other. Ours also passes on each job's log and progress; the provider's does neither.
`python -m benchmarks.waiting [--runs 1000] [--poll 10] [--seconds 40] [--ends 200] [--output text|json]`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from typing import Any

from benchmarks.local_services import LocalServices, call, local_services

PRODUCERS = 3
"""Processes that make the runs."""

NAMES = {"ours": "RunTrigger (Trainops)", "provider": "CustomJobTrigger (provider)"}
ROWS = {
    "vertex": "calls to Vertex AI a minute",
    "logging": "calls to Cloud Logging a minute",
    "storage": "calls to Cloud Storage a minute",
    "cpu": "CPU seconds a minute",
    "peak_mib": "peak memory, MiB",
    "delay_mean": "job's end to event, mean seconds",
    "delay_p95": "job's end to event, 95 % within",
    "settle_cpu": "CPU seconds to start all triggers",
    "ends_cpu": "CPU seconds while jobs ended",
}

Json = dict[str, Any]


def main(arguments: argparse.Namespace) -> int:
    """Measure both and print the table; answers 1 when a trigger fired wrongly or not at all."""
    load = os.getloadavg()[0]
    with local_services(["-m", "benchmarks.job_server", "PORT"]) as services:
        runs = make_runs(services, arguments.runs)
        raw = {who: measure(who, services, runs, arguments) for who in NAMES}
    figures = {who: figures_of(found, arguments.seconds) for who, found in raw.items()}
    wrong = {who: found["wrong"][:3] for who, found in raw.items() if found["wrong"] or found["missing"]}
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "load_before": round(load, 1)}
    if arguments.output == "json":
        told = {"machine": machine, "arguments": vars(arguments), "figures": figures, "wrong": wrong}
        print(json.dumps(told, indent=1))
    else:
        print_table(figures, arguments, machine)
    for who, examples in wrong.items():
        print(f"{who}: {raw[who]['missing']} events did not come, wrong ones: {examples}", file=sys.stderr)
    return 1 if wrong else 0


def make_runs(services: LocalServices, count: int) -> list[Json]:
    """Begin and submit the runs, in some processes."""
    share = -(-count // PRODUCERS)
    starts = range(0, count, share)
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.waiting_runs", str(first), str(min(share, count - first))],
            stdout=subprocess.PIPE, env=services.environment, text=True,
        )
        for first in starts
    ]  # fmt: skip
    outputs = [worker.communicate()[0] for worker in workers]
    if any(worker.returncode for worker in workers):
        sys.exit("the runs could not be made")
    return [run for output in outputs for run in json.loads(output)]


def measure(who: str, services: LocalServices, runs: list[Json], arguments: argparse.Namespace) -> Json:
    """Run one triggerer and return what it measured."""
    call(f"{services.vertex}/bench/schedule", {})
    result = services.storage_log.with_name(f"{who}.json")
    task = {
        "runs": runs, "vertex": services.vertex, "storage_log": str(services.storage_log), "poll": arguments.poll,
        "result": str(result), "seconds": arguments.seconds, "settle_seconds": arguments.settle, "ends": arguments.ends,
        "ends_over": arguments.ends_over,
    }  # fmt: skip
    command = [sys.executable, "-m", "benchmarks.triggerer", who]
    done = subprocess.run(
        command, input=json.dumps(task), capture_output=True, text=True, env=services.environment, check=False
    )
    if done.returncode:
        sys.exit(f"{who} failed:\n{done.stderr[-4000:]}")
    measured: Json = json.loads(result.read_text())
    return measured


def figures_of(found: Json, seconds: float) -> dict[str, float]:
    """The rows of the table from what a triggerer measured in `seconds`."""
    minute = 60 / seconds
    calls = found["calls"]
    delays = sorted(found["delays"])
    return {
        "vertex": minute * sum(count for name, count in calls.items() if name.startswith("customJobs")),
        "logging": minute * calls.get("entries.list", 0),
        "storage": minute * calls["storage"],
        "cpu": minute * found["cpu"],
        "peak_mib": found["peak_mib"],
        "delay_mean": statistics.fmean(delays) if delays else float("nan"),
        "delay_p95": delays[int(0.95 * (len(delays) - 1))] if delays else float("nan"),
        "settle_cpu": found["settle_cpu"],
        "ends_cpu": found["ends_cpu"],
    }


def print_table(figures: dict[str, dict[str, float]], arguments: argparse.Namespace, machine: Json) -> None:
    """Print a row for each figure; the ratio is ours to the provider's."""
    print(
        f"{arguments.runs:,} runs waiting in one event loop of a plain process, as in Airflow's triggerer; polled\n"
        f"every {arguments.poll:g} s; then {arguments.ends} jobs ended over {arguments.ends_over:g} s. "
        f"{machine['cores']} cores, Python {machine['python']}, load before {machine['load_before']}.\n"
        "The provider's client speaks REST here (its hook knows only Google's address, over gRPC)."
    )
    print(f"{'':<36}{NAMES['ours']:>24}{NAMES['provider']:>30}{'ratio':>9}")
    for key, title in ROWS.items():
        mine, theirs = figures["ours"][key], figures["provider"][key]
        ratio = f"{mine / theirs:.3f}" if theirs else "-"
        print(f"{title:<36}{mine:>24,.1f}{theirs:>30,.1f}{ratio:>9}")


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="runs that wait (default 1000)")
    parser.add_argument("--poll", type=float, default=10, help="seconds between looks, of both (default 10)")
    parser.add_argument("--settle", type=float, default=30, help="seconds to start all triggers (default 30)")
    parser.add_argument("--seconds", type=float, default=40, help="seconds that are measured (default 40)")
    parser.add_argument("--ends", type=int, default=200, help="jobs that end afterwards (default 200)")
    parser.add_argument("--ends-over", type=float, default=20, help="seconds over which they end (default 20)")
    parser.add_argument("--output", choices=["text", "json"], default="text")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main(parse()))
