"""What it takes from `execute()` to a job that Vertex AI has accepted, beside the Google provider's operator.

Both operators run outside a worker, against the local cloud's stand-in for Vertex AI and a GCS server, and defer. Ours
also translates the TrainingInput and keeps the record that lets a retry find the job; the provider's does neither.
`python -m benchmarks.submit [--processes 2] [--warm 5] [--output text|json]`.
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

from benchmarks.local_services import LocalServices, call, local_services, storage_calls

SERVER = ["-m", "localcloud.vertex", "--port", "PORT", "--state", "FOLDER", "--storage-endpoint", "STORAGE"]
NAMES = {"ours": "MLEngineStartTrainingJobOperator", "provider": "CreateCustomJobOperator (provider)"}
Json = dict[str, Any]


def main(arguments: argparse.Namespace) -> int:
    """Measure both and print the table."""
    load = os.getloadavg()[0]
    with local_services([*SERVER, "--python", sys.executable]) as services:
        figures = {who: measure(who, services, arguments) for who in NAMES}
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "load_before": round(load, 1)}
    if arguments.output == "json":
        print(json.dumps({"machine": machine, "arguments": vars(arguments), "figures": figures}, indent=1))
    else:
        print_table(figures, arguments, machine)
    return 0


def measure(who: str, services: LocalServices, arguments: argparse.Namespace) -> dict[str, float]:
    """Submit in fresh processes; the cheapest cold one counts, so that cold caches of the disk change nothing."""
    before = calls(services)
    runs = [submissions(who, services, arguments.warm + 1) for _ in range(arguments.processes)]
    made = {name: count - before[name] for name, count in calls(services).items()}
    cold = [run[0] for run in runs]
    warm = [one for run in runs for one in run[1:]]
    found: dict[str, float] = {}
    for moment in ("accepted", "deferred"):
        for index, unit in enumerate(("wall", "CPU")):
            found[f"cold, {moment}, {unit} seconds"] = min(one[moment][index] for one in cold)
            found[f"warm, {moment}, {unit} seconds"] = statistics.median(one[moment][index] for one in warm)
    jobs = len(runs) * (arguments.warm + 1)
    return dict(sorted(found.items())) | {f"calls to {name} a job": count / jobs for name, count in made.items()}


def submissions(who: str, services: LocalServices, count: int) -> list[Json]:
    """What one fresh process measured."""
    environment = {**services.environment, "BENCH_VERTEX": services.vertex}
    command = [sys.executable, "-m", "benchmarks.submission", who, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        sys.exit(f"{who} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    measured: list[Json] = json.loads(done.stdout.splitlines()[-1])
    return measured


def calls(services: LocalServices) -> dict[str, int]:
    """Requests that both servers have had."""
    entries = call(f"{services.vertex}/journal?event=call")["entries"]
    return {"Vertex AI": len(entries), "Cloud Storage": storage_calls(services.storage_log)}


def print_table(figures: dict[str, dict[str, float]], arguments: argparse.Namespace, machine: Json) -> None:
    """Print a row for each figure; the ratio is ours to the provider's."""
    print(
        f"From execute() to a job accepted, and to TaskDeferred. Cold: a fresh process that has imported airflow.sdk,\n"
        f"least of {arguments.processes}; warm: the median of {arguments.warm} more in each. {machine['cores']} cores, "
        f"Python {machine['python']}, load before {machine['load_before']}.\n"
        "The provider's client speaks REST here (its hook knows only Google's address, over gRPC)."
    )
    print(f"{'':<32}{NAMES['ours']:>34}{NAMES['provider']:>38}{'ratio':>8}")
    for title, mine in figures["ours"].items():
        theirs = figures["provider"][title]
        ratio = f"{mine / theirs:.2f}" if theirs else "-"
        print(f"{title:<32}{mine:>34.3f}{theirs:>38.3f}{ratio:>8}")


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2, help="fresh processes of each operator (default 2)")
    parser.add_argument("--warm", type=int, default=5, help="further jobs in each process (default 5)")
    parser.add_argument("--output", choices=["text", "json"], default="text")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main(parse()))
