"""Every cluster shape trains to the same losses as one process, also when it is killed on the way and changed."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.trainer.results import result

from trainer import loop

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

Run = Callable[..., int]
SpawnCluster = Callable[..., list[subprocess.Popen[str]]]
# A learning rate at which rounding does not grow: what is compared is the strategies' arithmetic, not chaos.
LONG: dict[str, Any] = {
    "steps": 50,
    "batch_size": 10,
    "learning_rate": 0.001,
    "checkpoint_every": 7,
    "eval_every": 10,
    "model": {"family": "llama", "dropout": 0.0},
}
SHAPES: dict[str, dict[str, Any]] = {
    "ddp": {"workers": 2},
    "fsdp": {"workers": 2, "strategy": "fsdp"},
    "servers": {"workers": 2, "servers": 2},
}


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def losses(folder: Path) -> dict[tuple[int, str], float]:
    return {(line["step"], key): line[key] for line in lines(folder) for key in ("loss", "eval_loss") if key in line}


def ended(processes: list[subprocess.Popen[str]]) -> None:
    outputs = [process.communicate(timeout=900)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), "\n".join(outputs)


def killed_at(folder: Path, step: int, processes: list[subprocess.Popen[str]]) -> None:
    """Kill all replicas when the checkpoint of `step` or a later one is there, or the metrics are past it."""
    deadline = time.monotonic() + 600
    while not any(int(path.parent.name[5:]) >= step for path in folder.glob("checkpoints/step-*/complete.json")):
        assert time.monotonic() < deadline, f"no checkpoint of step {step}"
        assert all(process.poll() is None for process in processes), "a replica ended by itself"
        time.sleep(0.01)
    for process in processes:
        process.kill()
    for process in processes:
        process.communicate()


@pytest.mark.parametrize("shape", SHAPES)
def test_fifty_steps_of_every_shape_have_the_losses_of_one_process(
    shape: str, spawn_cluster: SpawnCluster, train: Run, tmp_path: Path
) -> None:
    processes = spawn_cluster(tmp_path / "many", **SHAPES[shape], **LONG)
    assert train(tmp_path / "one", **LONG) == 0

    ended(processes)

    assert losses(tmp_path / "many") == pytest.approx(losses(tmp_path / "one"), abs=1e-4)
    assert result(tmp_path / "many")["eval_loss"] == pytest.approx(result(tmp_path / "one")["eval_loss"], abs=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_that_is_killed_and_started_again_ends_with_the_same_loss_bit_for_bit(
    shape: str, spawn_cluster: SpawnCluster, tmp_path: Path
) -> None:
    ended(spawn_cluster(tmp_path / "whole", **SHAPES[shape], **LONG))
    steps = sorted(random.Random(shape).sample(range(5, 43), 3))

    for step in steps:
        killed_at(tmp_path / "parts", step, spawn_cluster(tmp_path / "parts", **SHAPES[shape], **LONG))
    ended(spawn_cluster(tmp_path / "parts", **SHAPES[shape], **LONG))

    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    assert result(tmp_path / "parts")["eval_loss"] == result(tmp_path / "whole")["eval_loss"]
    assert result(tmp_path / "parts")["resumed_from"] >= steps[-1]


def test_a_run_that_changes_its_shape_each_time_it_is_killed_keeps_its_losses(
    spawn_cluster: SpawnCluster, train: Run, tmp_path: Path
) -> None:
    assert train(tmp_path / "one", **LONG) == 0

    for step, shape in zip((7, 14, 28), ("servers", "fsdp", "ddp"), strict=True):
        killed_at(tmp_path / "many", step, spawn_cluster(tmp_path / "many", **SHAPES[shape], **LONG))
    ended(spawn_cluster(tmp_path / "many", **SHAPES["servers"], **LONG))

    assert losses(tmp_path / "many") == pytest.approx(losses(tmp_path / "one"), abs=1e-4)


def test_fifty_interruptions_at_random_steps_change_nothing(
    train: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = {**LONG, "steps": 120, "checkpoint_every": 1, "eval_every": 40}
    assert train(tmp_path / "whole", **changes) == 0
    chance, original = random.Random(0), loop.Loop._log
    left = [chance.randint(1, 4) for _ in range(50)]

    def log(self: loop.Loop, *values: float) -> None:
        original(self, *values)
        countdown[0] -= 1
        if countdown[0] == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(loop.Loop, "_log", log)
    for steps in left:
        countdown = [steps]
        assert train(tmp_path / "parts", **changes) == 1
    countdown = [0]
    assert train(tmp_path / "parts", **changes) == 0

    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    assert result(tmp_path / "parts")["eval_loss"] == result(tmp_path / "whole")["eval_loss"]


def test_a_master_nine_workers_and_three_parameter_servers_train_as_one_process(
    spawn_cluster: SpawnCluster, train: Run, tmp_path: Path
) -> None:
    changes = {**LONG, "steps": 20, "batch_size": 20}
    processes = spawn_cluster(tmp_path / "many", 10, servers=3, **changes)
    ended(processes)
    assert train(tmp_path / "one", **changes) == 0

    assert losses(tmp_path / "many") == pytest.approx(losses(tmp_path / "one"), abs=1e-4)
    assert result(tmp_path / "many")["eval_loss"] == pytest.approx(result(tmp_path / "one")["eval_loss"], abs=1e-4)
    assert result(tmp_path / "many")["replicas"] == 13


def test_an_evaluator_ends_when_the_run_is_stopped_and_has_evaluated_what_was_saved_then(
    spawn_cluster: SpawnCluster, tmp_path: Path
) -> None:
    changes = {**LONG, "steps": 100_000, "eval_every": 0, "log_every": 50}
    processes = spawn_cluster(tmp_path, 1, evaluators=1, **changes)
    deadline = time.monotonic() + 600
    while not (tmp_path / "evaluations.jsonl").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)

    processes[0].send_signal(signal.SIGTERM)
    ended(processes)

    assert result(tmp_path)["status"] == "preempted"
    found = [json.loads(line) for line in (tmp_path / "evaluations.jsonl").read_text().splitlines()]
    assert found[-1]["step"] == result(tmp_path)["step"]
