from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trainer import loop
from trainer.files import Files, join

Train = Callable[..., int]
Scalars = dict[str, dict[int, float]]


def scalars(folder: Path) -> Scalars:
    """What TensorBoard shows of a folder of event files."""
    from tensorboard.backend.event_processing.event_accumulator import (  # type: ignore[import-untyped]  # no types
        EventAccumulator,
    )

    accumulator = EventAccumulator(str(folder))
    accumulator.Reload()
    tags = accumulator.Tags()["scalars"]
    return {tag: {event.step: event.value for event in accumulator.Scalars(tag)} for tag in tags}


def lines(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_tensorboard_shows_the_numbers_of_the_metrics(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIP_TENSORBOARD_LOG_DIR", str(tmp_path / "logs"))

    assert train(tmp_path / "job") == 0

    shown = scalars(tmp_path / "logs")
    for key in ("loss", "learning_rate", "grad_norm", "tokens_per_second", "memory_bytes", "data_seconds", "eval_loss"):
        assert shown[key] == pytest.approx({line["step"]: line[key] for line in lines(tmp_path / "job") if key in line})
    assert "mfu" not in shown


def test_after_a_resume_tensorboard_shows_each_step_once(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIP_TENSORBOARD_LOG_DIR", str(tmp_path / "logs"))
    original = loop.Loop._log

    def log(self: loop.Loop, *values: float) -> None:
        original(self, *values)
        if self.state.step == 4:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(loop.Loop, "_log", log)
        assert train(tmp_path / "job") == 0
    assert train(tmp_path / "job") == 0

    assert len(list((tmp_path / "logs").iterdir())) == 2
    expected = {line["step"]: line["loss"] for line in lines(tmp_path / "job") if "loss" in line}
    assert scalars(tmp_path / "logs")["loss"] == pytest.approx(expected)


def test_events_are_copied_into_a_bucket(
    train: Train, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = join(bucket, tmp_path.name, "logs")
    monkeypatch.setenv("AIP_TENSORBOARD_LOG_DIR", place)

    assert train(tmp_path / "job", steps=2) == 0

    copy = tmp_path / "copy"
    copy.mkdir()
    assert len(Files().download_folder(place, copy)) == 1
    assert sorted(scalars(copy)["loss"]) == [1, 2]


def test_a_bucket_that_is_not_there_costs_no_training(
    train: Train, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIP_TENSORBOARD_LOG_DIR", "gs://my-missing-bucket/logs")

    assert train(tmp_path, steps=2) == 0

    assert "warning: TensorBoard's events not written: gs://my-missing-bucket/logs" in capsys.readouterr().out


def test_without_tensorboard_the_trainer_says_what_to_install_and_trains(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIP_TENSORBOARD_LOG_DIR", str(tmp_path / "logs"))
    for name in [name for name in sys.modules if name.startswith(("tensorboard", "torch.utils.tensorboard"))]:
        monkeypatch.delitem(sys.modules, name)
    # None in this table makes an import fail as it does where the package is not installed.
    monkeypatch.setitem(sys.modules, "tensorboard", None)

    assert train(tmp_path / "job", steps=2) == 0

    assert "nothing is written there: pip install tensorboard" in capsys.readouterr().out
    assert not (tmp_path / "logs").exists()
