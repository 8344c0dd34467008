"""What importing each DAG file costs in CPU seconds over `import airflow.sdk`, beside the provider's Vertex operator.

The DAG processor pays this at every parse and a task at every try. CPU time rather than wall time, so that a busy
machine changes little; each is the least of several fresh interpreters, so that cold caches change nothing.
`python -m benchmarks.import_time [REPEATS] [--output text|json]`.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.local_services import ROOT, with_bytecode

LIMIT_SECONDS = 0.3
PEER = "from airflow.providers.google.cloud.operators.vertex_ai.custom_job import CreateCustomJobOperator"
HEAVY = [
    "google.cloud.aiplatform",
    "google.cloud.aiplatform_v1",
    "google.cloud.storage",
    "grpc",
    "numpy",
    "pandas",
    "torch",
]

# Runs in a fresh interpreter: `airflow.sdk` is the floor that every DAG file pays; what comes on top of it is counted.
PROBE = f"""
import json, sys, time
import airflow.sdk
from airflow.sdk import DAG
before = time.process_time()
exec(compile(sys.argv[1], "<probe>", "exec"), {{"__name__": "probe"}})
spent = time.process_time() - before
heavy = [name for name in {HEAVY!r} if name in sys.modules]
print("\\n" + json.dumps({{"over": spent, "floor": before, "heavy": heavy}}))
"""


@dataclass(frozen=True)
class Cost:
    """CPU seconds of an import over `airflow.sdk`, CPU seconds up to there, the heavy modules that it brought in."""

    over: float
    floor: float
    heavy: list[str]


def main(arguments: argparse.Namespace) -> int:
    """Print the table; answers 1 when there are no DAG files to measure. A slow one is said, not failed."""
    files, load = sorted((ROOT / "dags").glob("*.py")), os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        peer = measure(PEER, arguments.repeats, Path(folder))
        costs = {file.name: measure(import_of(file), arguments.repeats, Path(folder)) for file in files}
    if arguments.output == "json":
        machine = {"cores": os.cpu_count(), "python": platform.python_version(), "load_before": round(load, 1)}
        figures = {"provider": asdict(peer)} | {f"dags/{name}": asdict(cost) for name, cost in costs.items()}
        print(json.dumps({"machine": machine, "arguments": vars(arguments), "figures": figures}, indent=1))
    else:
        print_table(peer, costs, arguments.repeats)
    return 0 if costs else 1


def print_table(peer: Cost, costs: dict[str, Cost], repeats: int) -> None:
    """Print a line for each file, and which of them are slow."""
    print(f"CPU seconds over `import airflow.sdk` ({peer.floor:.2f} s), least of {repeats}")
    print(f"{'imported':<36}{'seconds':>9}{'ratio':>9}  heavy modules")
    print_row("CreateCustomJobOperator (provider)", peer, peer)
    for name, cost in costs.items():
        print_row(f"dags/{name}", cost, peer)
    slow = [name for name, cost in costs.items() if cost.over > LIMIT_SECONDS]
    print(f"limit {LIMIT_SECONDS} s: " + (f"exceeded by {', '.join(slow)}" if slow else f"kept by {len(costs)} files"))


def measure(code: str, repeats: int, folder: Path) -> Cost:
    """Run the code in fresh interpreters and give the cheapest; one more, since the first may find cold caches."""
    return min((run(code, folder) for _ in range(repeats + 1)), key=lambda cost: cost.over)


def run(code: str, folder: Path) -> Cost:
    """Run the code once in a fresh interpreter, set up as the DAG processor's is: `plugins` and `dags` on the path.

    Compiled modules are kept in `folder`, whatever this process was told about them: an image has them.
    """
    path = os.pathsep.join([str(ROOT / "plugins"), str(ROOT / "dags")])
    with tempfile.TemporaryDirectory() as home:
        environment = {**with_bytecode(folder), "PYTHONPATH": path, "AIRFLOW_HOME": home}
        done = subprocess.run(
            [sys.executable, "-c", PROBE, code], capture_output=True, text=True, env=environment, check=False
        )
    if done.returncode:
        sys.exit(f"the import failed:\n{code}\n{done.stderr}")
    return Cost(**json.loads(done.stdout.splitlines()[-1]))


def import_of(file: Path) -> str:
    """Give the code that imports a DAG file as the DAG processor does, by its path."""
    return (
        "import importlib.util\n"
        f"spec = importlib.util.spec_from_file_location('dag_file_{file.stem}', {str(file)!r})\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
    )


def print_row(name: str, cost: Cost, peer: Cost) -> None:
    """Print one line; the ratio says how many times cheaper than the peer."""
    ratio = "1" if cost is peer else f"1/{peer.over / max(cost.over, 0.001):.0f}"
    print(f"{name:<36}{cost.over:>9.2f}{ratio:>9}  {', '.join(cost.heavy) or 'none'}")


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repeats", type=int, nargs="?", default=3, help="interpreters for each file (default 3)")
    parser.add_argument("--output", choices=["text", "json"], default="text")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main(parse()))
