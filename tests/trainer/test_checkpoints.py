from __future__ import annotations

from pathlib import Path

import pytest
import torch

from trainer.checkpoints import Checkpoints
from trainer.files import Files


def saved(folder: Path, *steps: int) -> Checkpoints:
    checkpoints = Checkpoints(Files(), str(folder))
    for step in steps:
        checkpoints.save(step, {"step": step, "weights": torch.full((100,), float(step))})
    return checkpoints


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_two_newest_are_kept(tmp_path: Path) -> None:
    saved(tmp_path, 1, 2, 10)

    assert names(tmp_path) == ["step-00000002.pt", "step-00000010.pt"]


def test_an_empty_folder_has_none(tmp_path: Path) -> None:
    assert Checkpoints(Files(), str(tmp_path)).newest_sound() is None


@pytest.mark.parametrize("damage", ["flipped bit", "cut short", "empty", "foreign"])
def test_a_corrupt_newest_gives_way_to_the_one_before_and_is_told_of(
    damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoints = saved(tmp_path, 1, 2)
    path = tmp_path / "step-00000002.pt"
    data = bytearray(path.read_bytes())
    data[data.index(torch.full((100,), 2.0).numpy().tobytes()) + 7] ^= 1
    path.write_bytes({"flipped bit": bytes(data), "cut short": path.read_bytes()[:-9], "empty": b""}.get(damage, b"x"))

    assert checkpoints.newest_sound() == 1

    assert "step-00000002.pt is corrupt" in capsys.readouterr().out
    assert checkpoints.load(1)["step"] == 1
    assert names(tmp_path) == ["step-00000001.pt"]


def test_a_machine_without_memory_does_not_make_a_checkpoint_corrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*values: object, **options: object) -> None:
        torch.empty(10**15)

    checkpoints = saved(tmp_path, 1, 2)
    monkeypatch.setattr(torch, "load", no_memory)

    with pytest.raises(RuntimeError, match="DefaultCPUAllocator"):
        checkpoints.newest_sound()

    assert names(tmp_path) == ["step-00000001.pt", "step-00000002.pt"]
