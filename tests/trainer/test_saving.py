from __future__ import annotations

import threading
from pathlib import Path

import pytest
import torch

from trainer.checkpoints import Checkpoints
from trainer.config import ModelConfig, TrainerConfig
from trainer.errors import StorageError
from trainer.files import Files
from trainer.model import build_model
from trainer.pieces import Piece
from trainer.replicas import Replicas
from trainer.replicated import Replicated
from trainer.restoring import restore
from trainer.saving import Saver
from trainer.state import TrainingState

ALONE = Replicas(0, 1, torch.device("cpu"))


class SlowFiles(Files):
    """Writes checkpoints only when it may."""

    def __init__(self) -> None:
        self.may_write = threading.Event()
        self.error: Exception | None = None

    def write(self, uri: str, data: bytes, *, only_new: bool = False) -> bool:
        assert self.may_write.wait(60)
        if self.error:
            raise self.error
        return super().write(uri, data, only_new=only_new)


class Saving:
    """A model of one process, and what saves it."""

    def __init__(self, folder: Path) -> None:
        config = TrainerConfig(model=ModelConfig(hidden_size=16, layers=1, heads=1, context=8))
        model = build_model(config.model, vocab_size=20, end_of_text=0, seed=0)
        self.files = SlowFiles()
        self.strategy = Replicated(model, config, ALONE)
        self.checkpoints = Checkpoints(self.files, str(folder), self.strategy.layout)
        self.saver = Saver(self.checkpoints, self.strategy, ALONE, before_complete=lambda: None)

    def fill(self, value: float) -> None:
        """As if training had come to this."""
        with torch.no_grad():
            for piece in self.strategy.pieces():
                piece.values.fill_(value)

    def save(self, *steps: int) -> None:
        """Save one checkpoint right after the other."""
        self.files.may_write.set()
        for step in steps:
            self.fill(float(step))
            self.saver.begin(TrainingState(step=step))
        self.saver.finish()

    def restored(self) -> tuple[int | None, set[float]]:
        """The newest checkpoint, and the values in it."""
        self.fill(0.0)
        step = restore(self.checkpoints, self.strategy, ALONE, TrainingState())
        pieces: list[Piece] = self.strategy.pieces()
        return step, {value for piece in pieces for value in piece.values.tolist()}


@pytest.fixture
def saving(tmp_path: Path) -> Saving:
    return Saving(tmp_path)


def test_training_goes_on_while_what_was_there_is_written(saving: Saving) -> None:
    saving.fill(1.0)
    saving.saver.begin(TrainingState(step=5))
    saving.fill(2.0)

    assert saving.saver.written == 0
    saving.files.may_write.set()
    saving.saver.finish()

    assert saving.restored() == (5, {1.0})


def test_it_is_complete_only_when_all_replicas_have_written(saving: Saving) -> None:
    saving.files.may_write.set()
    saving.fill(1.0)
    saving.saver.begin(TrainingState(step=5))
    while not saving.saver.written:
        pass

    assert saving.checkpoints.steps() == []
    saving.saver.agree(0.0)
    assert saving.checkpoints.steps() == []
    saving.saver.agree(1.0)
    saving.saver.finish()
    assert saving.checkpoints.steps() == [5]


def test_the_next_one_waits_for_the_one_before(saving: Saving) -> None:
    saving.save(5, 6, 7)

    assert saving.checkpoints.steps() == [6, 7]
    assert saving.restored() == (7, {7.0})


def test_an_error_of_the_storage_ends_training_at_its_next_step(saving: Saving) -> None:
    saving.files.error = StorageError("gs://my-bucket/run: 503")
    saving.saver.begin(TrainingState(step=5))
    saving.files.may_write.set()

    with pytest.raises(StorageError, match="503"):
        while not saving.saver.written:
            pass


def test_a_corrupt_newest_gives_way_to_the_one_before_and_is_told_of(
    saving: Saving, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saving.save(5, 6, 7)
    (tmp_path / "step-00000007" / "replica-0-of-1.pt").unlink()

    assert saving.restored() == (6, {6.0})

    assert "step-00000007 is corrupt (replica-0-of-1.pt: Gone: " in capsys.readouterr().out
    assert saving.checkpoints.steps() == [6]
