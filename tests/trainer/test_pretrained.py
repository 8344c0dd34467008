from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.trainer.results import result
from transformers import AutoModelForCausalLM, AutoTokenizer

from trainer.files import Files, join

Train = Callable[..., int]
MakePlan = Callable[..., str]
SHAPELESS = {"family": "llama", "hidden_size": 128, "layers": 4, "heads": 4, "context": 32}
"""The defaults, as the plans of Trainops spell them out; of the shape the folder decides."""


@pytest.fixture(scope="module")
def model(tokens: str, make_plan: MakePlan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that a job left: qwen2, so that the family cannot be the default one."""
    from trainer.task import main

    folder = tmp_path_factory.mktemp("first")
    plan = make_plan(model={"family": "qwen2", "context": 48})
    assert main(["--config", plan, "--tokens", tokens, "--job-dir", str(folder)]) == 0
    return folder / "model"


@pytest.fixture
def go_on(train: Train, model: Path) -> Train:
    """Trains on from the folder."""

    def run(folder: Path, **changes: Any) -> int:
        return train(folder, **{"init_from": str(model), "model": SHAPELESS, **changes})

    return run


def test_training_goes_on_from_the_weights_of_the_folder(go_on: Train, model: Path, tmp_path: Path) -> None:
    assert go_on(tmp_path, model={**SHAPELESS, "context": 48}, steps=20) == 0

    found = result(tmp_path)
    assert found["eval_loss_before"] == pytest.approx(result(model.parent)["eval_loss"], abs=1e-5)
    assert found["eval_loss"] < found["eval_loss_before"]
    exported: Any = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    assert exported.config.model_type == "qwen2"
    assert exported.config.hidden_size == 32
    assert AutoTokenizer.from_pretrained(tmp_path / "model")("x = 1")["input_ids"]


def test_it_goes_on_after_an_interruption_as_every_run_does(go_on: Train, tmp_path: Path) -> None:
    assert go_on(tmp_path) == 0
    before = result(tmp_path)
    (tmp_path / "checkpoints" / "step-00000008" / "complete.json").unlink()

    assert go_on(tmp_path) == 0

    assert result(tmp_path)["resumed_from"] == 6
    assert result(tmp_path)["eval_loss"] == before["eval_loss"]


def test_the_folder_may_lie_in_a_bucket(go_on: Train, bucket: str, model: Path, tmp_path: Path) -> None:
    place = join(bucket, tmp_path.name)
    Files().upload_folder(model, place)

    assert go_on(tmp_path, init_from=place, steps=1, eval_every=0) == 0


def test_tokens_of_another_tokenizer_are_refused(
    go_on: Train, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    shutil.copytree(model, other)
    data = json.loads((other / "tokenizer.json").read_text())
    vocab = data["model"]["vocab"]
    first, second = (next(text for text, number in vocab.items() if number == wanted) for wanted in (70, 71))
    vocab[first], vocab[second] = 71, 70
    (other / "tokenizer.json").write_text(json.dumps(data))

    assert go_on(tmp_path / "job", init_from=str(other)) == 2

    told = capsys.readouterr().err
    assert f"trainer.init_from: the tokenizer of {other} is not that of" in told
    assert "token 70 is" in told
    assert f"tokenize again with tokenizer.init_from: {other}" in told


def test_a_tokenizer_of_the_same_tokens_that_splits_differently_is_refused(
    go_on: Train, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    shutil.copytree(model, other)
    data = json.loads((other / "tokenizer.json").read_text())
    data["model"]["merges"] = []
    (other / "tokenizer.json").write_text(json.dumps(data))

    assert go_on(tmp_path / "job", init_from=str(other)) == 2

    assert "they have the same tokens, but split text differently" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"model": {**SHAPELESS, "layers": 3}},
            "trainer.model.layers: got 3, but the shape is that of trainer.init_from",
        ),
        ({"model": {**SHAPELESS, "context": 64}}, "trainer.model.context: got 64; the model of"),
    ],
)
def test_a_shape_that_the_folder_decides_is_refused(
    changes: dict[str, Any], message: str, go_on: Train, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert go_on(tmp_path, **changes) == 2

    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", None, "no config.json in it; name a Hugging Face folder"),
        ("config.json", b'{"model_type": "nonsense"}', "transformers loads no model from it"),
        ("model.safetensors", None, "transformers loads no model from it"),
        ("model.safetensors", b"nonsense", "transformers loads no model from it"),
        ("tokenizer_config.json", None, "no tokenizer_config.json in it"),
    ],
)
def test_a_folder_that_is_not_whole_is_refused(
    file: str,
    content: bytes | None,
    message: str,
    go_on: Train,
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = tmp_path / "other"
    shutil.copytree(model, other)
    (other / file).unlink()
    if content is not None:
        (other / file).write_bytes(content)

    assert go_on(tmp_path / "job", init_from=str(other)) == 2

    assert message in capsys.readouterr().err


def test_weights_that_lack_a_part_are_refused(
    go_on: Train, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from safetensors.torch import load_file, save_file

    other = tmp_path / "other"
    shutil.copytree(model, other)
    weights = load_file(other / "model.safetensors")
    del weights["model.norm.weight"]
    save_file(weights, other / "model.safetensors", metadata={"format": "pt"})

    assert go_on(tmp_path / "job", init_from=str(other)) == 2

    assert "its weights lack 1 of the model's, model.norm.weight among them" in capsys.readouterr().err


def test_weights_that_the_model_has_no_place_for_are_told_of(
    go_on: Train, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from safetensors.torch import load_file, save_file

    other = tmp_path / "other"
    shutil.copytree(model, other)
    weights = load_file(other / "model.safetensors")
    weights["value_head.weight"] = weights["model.norm.weight"].clone()
    save_file(weights, other / "model.safetensors", metadata={"format": "pt"})

    assert go_on(tmp_path / "job", init_from=str(other), steps=1) == 0

    assert "1 weights are none of the model's and are left out, value_head.weight among them" in capsys.readouterr().out


def test_new_documents_are_tokenized_with_the_folders_tokenizer(
    go_on: Train, model: Path, dataset: str, tokens: str, make_plan: MakePlan, tmp_path: Path
) -> None:
    from trainer.tokenize import main

    plan = make_plan(tokenizer={"vocab_size": 2048, "init_from": str(model)})
    assert main(["--dataset", dataset, "--output", str(tmp_path), "--config", plan]) == 0

    manifests = [json.loads((Path(folder) / "manifest.json").read_text()) for folder in (tokens, str(tmp_path))]
    assert manifests[0] == manifests[1]


def test_a_size_of_vocabulary_beside_a_folders_tokenizer_is_refused(
    model: Path, dataset: str, make_plan: MakePlan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from trainer.tokenize import main

    plan = make_plan(tokenizer={"vocab_size": 300, "init_from": str(model)})
    assert main(["--dataset", dataset, "--output", str(tmp_path), "--config", plan]) == 2

    assert "tokenizer.vocab_size: got 300, but the tokenizer is that of tokenizer.init_from" in capsys.readouterr().err
