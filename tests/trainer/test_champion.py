"""The champion is evaluated on the held-out text of the training that wants to replace it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.trainer.results import result

from trainer.files import Files, join

Run = Callable[..., int]
MakePlan = Callable[..., str]


@pytest.fixture(scope="module")
def champion(tokens: str, make_plan: MakePlan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a job left: longer trained than the small config says."""
    from trainer.task import main

    folder = tmp_path_factory.mktemp("champion")
    assert main(["--config", make_plan(steps=16), "--tokens", tokens, "--job-dir", str(folder)]) == 0
    return folder


@pytest.fixture
def train_against(make_plan: MakePlan, tokens: str, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Trains a model that has to beat the one of a folder; gives its result."""
    from trainer.task import main

    def run(uri: str, *, data: str = tokens, heldout: str | None = "elsewhere", **changes: Any) -> dict[str, Any]:
        plan = Path(make_plan(**changes))
        told = {"version": "first-g1", "uri": uri, "heldout": heldout}
        plan.write_text(json.dumps(json.loads(plan.read_text()) | {"champion": told}))
        folder = tmp_path / "job"
        assert main(["--config", str(plan), "--tokens", data, "--job-dir", str(folder)]) == 0
        assert result(folder)["status"] == "succeeded"
        return result(folder)

    return run


def test_the_loss_is_the_one_that_its_own_training_found_on_the_same_tokens(
    champion: Path, tokens: str, train_against: Callable[..., dict[str, Any]]
) -> None:
    found = train_against(str(champion / "model"))["champion"]
    assert found["eval_loss"] == pytest.approx(result(champion)["eval_loss"], abs=1e-5)
    assert found["eval_tokens"] == result(champion)["eval_tokens"]
    assert (found["version"], found["tokens"], found["error"]) == ("first-g1", tokens, None)
    assert found["loss_per_byte"] is None


def test_a_champion_whose_own_loss_is_of_these_tokens_is_not_evaluated_again(
    champion: Path, tokens: str, train_against: Callable[..., dict[str, Any]]
) -> None:
    assert train_against(str(champion / "model"), heldout=f"{tokens}/")["champion"] is None


def test_with_another_tokenizer_both_are_told_per_byte_of_the_same_text(
    champion: Path,
    dataset: str,
    make_plan: MakePlan,
    train_against: Callable[..., dict[str, Any]],
    tmp_path: Path,
) -> None:
    from trainer.tokenize import main

    other = make_plan(tokenizer={"vocab_size": 600})
    assert main(["--dataset", dataset, "--output", str(tmp_path / "other"), "--config", other]) == 0
    done = train_against(str(champion / "model"), data=str(tmp_path / "other"), steps=1, learning_rate=1e-9)
    found = done["champion"]
    assert found["error"] is None
    # The champion was trained, the other hardly: per token of different lengths this could not be told.
    assert found["loss_per_byte"] < found["own_loss_per_byte"]
    per_token = json.loads((tmp_path / "other" / "manifest.json").read_text())["bytes_per_token"]
    assert found["own_loss_per_byte"] == pytest.approx(done["eval_loss"] / per_token, rel=0.2)


def test_the_folder_may_lie_in_a_bucket(
    champion: Path, bucket: str, train_against: Callable[..., dict[str, Any]]
) -> None:
    Files().upload_folder(champion / "model", join(bucket, "champion"))
    found = train_against(join(bucket, "champion"))["champion"]
    assert found["eval_loss"] == pytest.approx(result(champion)["eval_loss"], abs=1e-5)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda folder: [path.unlink() for path in folder.iterdir()], "no tokenizer_config.json"),
        (lambda folder: (folder / "config.json").write_text("{"), "is not a valid JSON file"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"short"), "transformers loads no model"),
    ],
    ids=["empty", "broken config", "broken weights"],
)
def test_one_that_cannot_be_loaded_fails_no_training_and_says_why(
    champion: Path,
    damage: Callable[[Path], Any],
    words: str,
    train_against: Callable[..., dict[str, Any]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "damaged"
    folder.mkdir()
    for path in (champion / "model").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    damage(folder)
    found = train_against(str(folder))["champion"]
    assert words in found["error"]
    assert found["eval_loss"] is None
    assert "warning: the champion first-g1 was not evaluated" in capsys.readouterr().out


def test_of_pairs_under_another_tokenizer_it_is_told_that_they_cannot_be_compared(
    champion: Path, pair_tokens: str, train_against: Callable[..., dict[str, Any]]
) -> None:
    found = train_against(str(champion / "model"), data=pair_tokens)["champion"]
    assert "the text of pairs cannot be cut anew" in found["error"]


def test_the_exported_model_is_loaded_from_its_files_and_writes(
    champion: Path,
) -> None:
    found = result(champion)["generation"]
    assert (found["loaded"], found["finite"], found["error"]) == (True, True, None)
    assert found["tokens"] > 0
    assert found["characters"] > 0
    assert len(result(champion)["sample"]) > found["characters"]
