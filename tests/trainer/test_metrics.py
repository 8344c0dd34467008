from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from trainer import metrics
from trainer.files import Files
from trainer.metrics import MetricsLog


def read(path: Path) -> list[tuple[int, list[str]]]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [(line["step"], sorted(line)) for line in lines]


def test_lines_appear_while_training_and_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "WRITE_SECONDS", 0.05)
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(Files(), str(path))

    with log.writing():
        log.add({"step": 1, "loss": 2.0})
        deadline = time.monotonic() + 10
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert read(path) == [(1, ["loss", "step", "time"])]
        log.add({"step": 2, "loss": 1.0})

    assert [step for step, _ in read(path)] == [1, 2]


def test_writes_of_two_threads_do_not_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "WRITE_SECONDS", 0.001)
    log = MetricsLog(Files(), str(tmp_path / "metrics.jsonl"))

    with log.writing():
        for step in range(100):
            log.add({"step": step, "loss": 1.0})
            log.write()

    assert [step for step, _ in read(tmp_path / "metrics.jsonl")] == list(range(100))


def test_after_a_resume_later_lines_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps({"step": step, "loss": 1.0}) + "\n" for step in range(1, 6)))
    log = MetricsLog(Files(), str(path))

    log.restore(3)
    log.add({"step": 4, "loss": 0.5})
    log.write()

    assert [step for step, _ in read(path)] == [1, 2, 3, 4]


def test_an_evaluation_done_again_replaces_the_one_before(tmp_path: Path) -> None:
    log = MetricsLog(Files(), str(tmp_path / "metrics.jsonl"))

    log.add({"step": 4, "loss": 2.0})
    log.add({"step": 4, "eval_loss": 2.0})
    log.add({"step": 4, "eval_loss": 2.0})
    log.write()

    assert [keys for _, keys in read(tmp_path / "metrics.jsonl")] == [
        ["loss", "step", "time"],
        ["eval_loss", "step", "time"],
    ]
