from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from trainer.checkpoints import Checkpoints
from trainer.errors import UserError
from trainer.files import Files, join
from trainer.layout import Layout
from trainer.pieces import KINDS, Piece

LAYOUT = Layout({"matrix": (5, 20), "vector": (7,)}, decayed=100)
SIZES = {"matrix": 100, "vector": 7}
ALL = slice(None)


def pieces(value: float, *cuts: tuple[int, int]) -> list[Piece]:
    """The parts of all parameters and moments that lie between two hundredths of their length."""
    found = []
    for start, end in cuts:
        for name, size in SIZES.items():
            first, last = size * start // 100, size * end // 100
            found += [Piece(kind, name, first, last, torch.full((last - first,), value)) for kind in KINDS]
    return found


def save(checkpoints: Checkpoints, step: int) -> None:
    """Save `step` as two replicas would, the second of which holds two parts."""
    held = [pieces(float(step), (0, 30)), pieces(float(step), (30, 60), (60, 100))]
    for rank, own in enumerate(held):
        checkpoints.write(step, f"replica-{rank}-of-2.pt", own)
    checkpoints.commit(step, record(step, held))


def record(step: int, held: list[list[Piece]]) -> dict[str, Any]:
    files = [
        {"name": f"replica-{rank}-of-{len(held)}.pt", "pieces": [piece.range for piece in own]}
        for rank, own in enumerate(held)
    ]
    return {"step": step, "sequences": 0, "shapes": LAYOUT.shapes, "files": files}


def saved(folder: Path | str, *steps: int) -> Checkpoints:
    checkpoints = Checkpoints(Files(), str(folder), LAYOUT)
    for step in steps:
        save(checkpoints, step)
    return checkpoints


def names(step: int) -> list[str]:
    return [f"step-{step:08d}/{name}" for name in ("complete.json", "replica-0-of-2.pt", "replica-1-of-2.pt")]


def problem(checkpoints: Checkpoints, step: int) -> str | None:
    found, wrong = checkpoints.record(step)
    return wrong or checkpoints.problem(step, found, ALL)


def test_the_two_newest_are_kept(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 1, 2, 10)

    assert checkpoints.steps() == [2, 10]
    assert Files().below(str(tmp_path)) == [*names(2), *names(10)]
    assert not (tmp_path / "step-00000001").exists()


def test_an_empty_folder_has_none(tmp_path: Path) -> None:
    assert saved(tmp_path / "none").steps() == []


def test_in_a_bucket_they_are_the_same(bucket: str, tmp_path: Path) -> None:
    folder = join(bucket, tmp_path.name)

    checkpoints = saved(folder, 1, 2, 10)

    assert checkpoints.steps() == [2, 10]
    assert Files().below(folder) == [*names(2), *names(10)]
    assert problem(checkpoints, 10) is None


def test_a_checkpoint_exists_only_when_it_is_complete(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 3)
    checkpoints.write(1, "replica-0-of-2.pt", pieces(1.0, (0, 30)))
    checkpoints.write(5, "replica-0-of-2.pt", pieces(5.0, (0, 30)))

    assert checkpoints.steps() == [3]
    save(checkpoints, 4)

    # What is older than a whole one was never completed; what is newer may be being written.
    assert Files().below(str(tmp_path)) == [*names(3), *names(4), "step-00000005/replica-0-of-2.pt"]


def test_any_other_cut_of_the_pieces_is_filled_from_it(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 7)
    held = pieces(0.0, (10, 50), (50, 95))

    checkpoints.load(7, checkpoints.record(7)[0], held)

    assert all(bool((piece.values == 7).all()) for piece in held)


@pytest.mark.parametrize("damage", ["flipped bit", "cut short", "empty", "foreign", "missing", "of another cut"])
def test_a_file_that_is_not_whole_is_found_and_named(damage: str, tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 1, 2)
    path = tmp_path / "step-00000002" / "replica-1-of-2.pt"
    data = bytearray(path.read_bytes())
    data[data.index(torch.full((20,), 2.0).numpy().tobytes()) + 7] ^= 1
    path.write_bytes({"flipped bit": bytes(data), "cut short": path.read_bytes()[:-9], "empty": b""}.get(damage, b"x"))
    if damage == "missing":
        path.unlink()
    if damage == "of another cut":
        shutil.copy(path.with_name("replica-0-of-2.pt"), path)

    assert (problem(checkpoints, 2) or "").startswith("replica-1-of-2.pt: ")
    assert problem(checkpoints, 1) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"step": 2}', '{"shapes": {"matrix": [5, 20]}, "files": [{}]}'])
def test_what_should_say_that_it_is_complete_may_be_damaged_as_well(text: str, tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 1, 2)
    (tmp_path / "step-00000002" / "complete.json").write_text(text)

    assert problem(checkpoints, 2)


def test_a_piece_that_no_file_has_is_named(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 2)
    path = tmp_path / "step-00000002" / "complete.json"
    content = json.loads(path.read_text())
    content["files"][1]["pieces"].remove(["exp_avg", "matrix", 30, 60])
    path.write_text(json.dumps(content))

    assert problem(checkpoints, 2) == "no file has the exp_avg of matrix, values 30 to 100"


def test_one_of_another_model_is_the_users_error(tmp_path: Path) -> None:
    saved(tmp_path, 2)
    other = Checkpoints(Files(), str(tmp_path), Layout({"matrix": (5, 30), "vector": (7,)}, decayed=150))

    with pytest.raises(UserError, match=r"of another model than trainer\.model: matrix is 5x20 there and 5x30 here"):
        other.check_model(other.record(2)[0])


def test_the_one_file_of_an_earlier_version_is_read_and_later_deleted(tmp_path: Path) -> None:
    model = {"matrix": torch.full((5, 20), 1.0), "vector": torch.full((7,), 2.0), "buffer": torch.zeros(3)}
    moments = [{"step": 4, "exp_avg": value + 10, "exp_avg_sq": value + 20} for value in list(model.values())[:2]]
    old = {"model": model, "optimizer": {"state": dict(enumerate(moments))}, "step": 4, "sequences": 16}
    old |= {"seconds": 1.5, "eval_loss_before": 6.0, "random": [{"cpu": torch.get_rng_state()}]}
    torch.save(old, tmp_path / "step-00000004.pt")
    checkpoints = saved(tmp_path)
    held = pieces(0.0, (0, 40), (40, 100))

    assert checkpoints.steps() == [4]
    assert problem(checkpoints, 4) is None
    found, _ = checkpoints.record(4)
    checkpoints.load(4, found, held)

    assert (found["step"], found["sequences"], found["seconds"], found["counts"]) == (
        4,
        16,
        1.5,
        dict.fromkeys(SIZES, 4),
    )
    first = {"matrix": 1.0, "vector": 2.0}
    for piece in held:
        expected = first[piece.name] + {"weight": 0, "exp_avg": 10, "exp_avg_sq": 20}[piece.kind]
        assert bool((piece.values == expected).all())
    save(checkpoints, 5)
    save(checkpoints, 6)
    assert Files().below(str(tmp_path)) == [*names(5), *names(6)]


def test_an_old_file_that_is_cut_short_is_corrupt(tmp_path: Path) -> None:
    (tmp_path / "step-00000004.pt").write_bytes(b"x")

    assert "BadZipFile" in (problem(saved(tmp_path), 4) or "")


def test_a_machine_without_memory_does_not_make_a_checkpoint_corrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*values: object, **options: object) -> None:
        torch.empty(10**15)

    checkpoints = saved(tmp_path, 2)
    monkeypatch.setattr(torch, "load", no_memory)

    with pytest.raises(RuntimeError, match="DefaultCPUAllocator"):
        problem(checkpoints, 2)
