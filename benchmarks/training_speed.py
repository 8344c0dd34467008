"""Tokens a second of the trainer on this machine, beside `transformers.Trainer` and a bare torch loop.

The same model, batch, threads and tokens for all three, each in a process of its own, in turns; what counts is the
median of windows of ten steps after the first ones. Ours keeps its metrics and saves checkpoints as in a job.
Runs in the trainer's environment: `.venv-trainer/bin/python -m benchmarks.training_speed [--steps N] [--rounds N]
[--output text|json]`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "trainer" / "src"
WINDOW = 10
"""Steps between two lines of metrics."""
SKIPPED = 3
"""Windows at the beginning that do not count: memory is still being allotted."""
MODEL = {"family": "llama", "hidden_size": 128, "layers": 4, "heads": 4, "context": 128}
BATCH = 8
LOOPS = ("ours", "transformers.Trainer", "bare torch loop")


@dataclass(frozen=True)
class Speed:
    """What one loop reached.

    :param parts: seconds of a part of the step for each second in steps; empty for others than ours.
    """

    tokens_per_second: float
    parts: dict[str, float]


def main(arguments: argparse.Namespace) -> int:
    """Run the loops in turns and print the table."""
    load = os.getloadavg()[0]
    speeds: dict[str, list[Speed]] = {name: [] for name in LOOPS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan = prepare(folder, arguments.steps)
        for number in range(arguments.rounds):
            for loop in LOOPS:
                job = folder / f"{loop}-{number}"
                speeds[loop].append(run(loop, plan, folder / "tokens", job, arguments.steps))
    found = {loop: statistics.median(one.tokens_per_second for one in speeds[loop]) for loop in LOOPS}
    parts = speeds["ours"][-1].parts
    if arguments.output == "json":
        rounds = {loop: [asdict(one) for one in ones] for loop, ones in speeds.items()}
        print(json.dumps({"tokens_per_second": found, "parts": parts, "rounds": rounds}))
        return 0
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {load:.1f}; {arguments.rounds} rounds")
    print(f"\n| loop | tokens/s | ours beside it |\n|---|---|---|\n| ours | {found['ours']:,.0f} | |")
    for loop in LOOPS[1:]:
        print(f"| {loop} | {found[loop]:,.0f} | {found['ours'] / found[loop]:.2f} |")
    print("\nours, per cent of the time in steps: " + ", ".join(f"{part} {100 * of:.1f}" for part, of in parts.items()))
    return 0


def prepare(folder: Path, steps: int) -> Path:
    """Stage the standard library as a dataset, make its tokens, and write the plan of a job."""
    stage(folder / "dataset")
    plan = folder / "plan.json"
    training = {
        "model": MODEL, "steps": steps, "batch_size": BATCH, "warmup_steps": 10, "log_every": WINDOW,
        "eval_every": 0, "eval_batches": 1, "checkpoint_every": steps // 4,
    }  # fmt: skip
    plan.write_text(json.dumps({"tokenizer": {"vocab_size": 2048}, "trainer": training}))
    command = ["--dataset", folder / "dataset", "--output", folder / "tokens", "--config", plan]
    call("trainer.tokenize", *map(str, command))
    return plan


def stage(folder: Path) -> None:
    """Write modules of the standard library as a staged dataset."""
    from trainer.files import crc32c

    folder.mkdir()
    paths = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    texts = [path.read_text(encoding="utf-8") for path in paths]
    lines = [{"id": hashlib.sha256(text.encode()).hexdigest()[:16], "source": "-", "text": text} for text in texts]
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    (folder / "shard-00000.jsonl").write_bytes(data)
    shard = {"name": "shard-00000.jsonl", "bytes": len(data), "crc32c": crc32c(data), "documents": len(lines)}
    manifest = {"schema": 1, "dataset": "stdlib", "sha16": "0" * 16, "shards": [shard]}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def run(loop: str, plan: Path, tokens: Path, job: Path, steps: int) -> Speed:
    """Run one loop in a process of its own."""
    if loop == "ours":
        call("trainer.task", "--config", str(plan), "--tokens", str(tokens), "--job-dir", str(job))
        return of_metrics(job / "metrics.jsonl")
    seconds: list[float] = json.loads(call("benchmarks.training_peers", loop, str(tokens), str(steps)).splitlines()[-1])
    windows = [sum(seconds[at : at + WINDOW]) for at in range(SKIPPED * WINDOW, len(seconds) - WINDOW + 1, WINDOW)]
    return Speed(WINDOW * BATCH * MODEL["context"] / statistics.median(windows), {})  # type: ignore[operator]


def of_metrics(path: Path) -> Speed:
    """Read what the trainer itself noted; the time of a checkpoint lies between steps, and is set off against them."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in path.read_text().splitlines()]
    windows = [line for line in lines if "tokens_per_second" in line][SKIPPED:]
    total = sum(line["step_seconds"] for line in windows)
    parts = {
        name: sum(line[f"{name}_seconds"] for line in windows) / total
        for name in ("data", "forward_backward", "checkpoint")
    }
    return Speed(statistics.median(line["tokens_per_second"] for line in windows), parts)


def call(module: str, *arguments: str) -> str:
    """Run a module in this environment and return what it printed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), str(ROOT)])}
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{module} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.path.insert(0, str(SOURCE))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200, help="optimizer steps of each loop")
    parser.add_argument("--rounds", type=int, default=3, help="times that each loop runs")
    parser.add_argument("--output", choices=["text", "json"], default="text")
    raise SystemExit(main(parser.parse_args()))
