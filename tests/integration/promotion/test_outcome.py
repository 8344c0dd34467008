"""What `check_outputs` finds, and what it refuses."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from trainops.errors import OutputsMissing
from trainops.steps.outcome import check_outputs

if TYPE_CHECKING:
    from tests.integration.promotion.conftest import Registry, Training


def test_complete_outputs_are_described_with_their_lineage(training: Training) -> None:
    outcome = check_outputs(training.storage, training.plan, 1, training.settings)
    assert [item.name for item in outcome.files] == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
    ]
    assert (outcome.losses.logged, outcome.losses.last, outcome.losses.last_step) == (2, 3.2, 600)
    assert outcome.bytes_per_token == pytest.approx(2.9)
    assert (outcome.lineage.dataset_sha16, outcome.lineage.tokenizer_sha16) == ("a" * 16, "b" * 16)
    assert outcome.lineage.jobs == ("customJobs/1",)
    assert outcome.lineage.packages[0].endswith("trainer-0.1.0.tar.gz")


def test_checking_twice_writes_once(training: Training, registry: Registry) -> None:
    check_outputs(training.storage, training.plan, 1, training.settings)
    first = registry.run_object(training.plan, "outcome.json")
    check_outputs(training.storage, training.plan, 1, training.settings)
    assert registry.run_object(training.plan, "outcome.json") == first


def test_the_settings_are_those_of_the_plan_unless_handed_in(training: Training, environment: None) -> None:
    assert check_outputs(training.storage, training.plan, 1).folder == f"{training.folder}/model"


def test_everything_that_is_missing_is_named_at_once(registry: Registry) -> None:
    with pytest.raises(OutputsMissing) as caught:
        check_outputs(registry.storage, registry.plan(), 1, registry.settings)
    for words in ("result.json is missing", "metrics.jsonl is missing", "the model folder is empty"):
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"status": "failed"}, "result.json: status"),
        ({"eval_loss": None}, "result.json: eval_loss"),
        ({"eval_loss": math.nan}, "result.json: eval_loss is nan"),
        ({"eval_loss_before": math.inf}, "result.json: eval_loss_before is inf"),
        ({"step": 400}, "the training stopped at step 400 of 600"),
        ({"step": 300, "steps": 300}, "a training of 300 steps, the plan asks for 600"),
        ({"model": "gs://elsewhere/g1/model"}, "the model is gs://elsewhere/g1/model, not this generation's"),
    ],
)
def test_a_result_that_cannot_be_right_is_refused(training: Training, change: dict[str, Any], words: str) -> None:
    training.write_result(**change)
    with pytest.raises(OutputsMissing, match=r"result\.json|stopped") as caught:
        check_outputs(training.storage, training.plan, 1, training.settings)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("config.json", None, "config.json is missing"),
        ("config.json", b"{", "is not JSON"),
        ("config.json", b"{}", "has no model_type"),
        ("model.safetensors", None, "model.safetensors is missing"),
        ("model.safetensors", b"short", "too few for safetensors"),
        ("model.safetensors", (2).to_bytes(8, "little") + b"{}", "names no tensor"),
        ("tokenizer.json", None, "the tokenizer is missing"),
    ],
)
def test_a_model_folder_that_is_not_whole_is_refused(
    training: Training, name: str, data: bytes | None, words: str
) -> None:
    if data is None:
        training.storage.delete(f"{training.folder}/model/{name}")
    else:
        training.write(f"model/{name}", data)
    with pytest.raises(OutputsMissing, match=words):
        check_outputs(training.storage, training.plan, 1, training.settings)


def test_weights_that_were_cut_short_are_refused(training: Training) -> None:
    training.write_model(training.weights()[:-1])
    with pytest.raises(OutputsMissing, match="the header promises"):
        check_outputs(training.storage, training.plan, 1, training.settings)


def test_weights_in_shards_are_complete_when_every_shard_is_there(training: Training) -> None:
    training.storage.delete(f"{training.folder}/model/model.safetensors")
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    training.write("model/model.safetensors.index.json", json.dumps(index).encode())
    training.write("model/model-1.safetensors", training.weights())
    with pytest.raises(OutputsMissing, match=r"model-2\.safetensors is missing"):
        check_outputs(training.storage, training.plan, 1, training.settings)
    training.write("model/model-2.safetensors", training.weights())
    assert len(check_outputs(training.storage, training.plan, 1, training.settings).files) == 6


def test_a_loss_that_is_not_finite_is_named_with_its_step(training: Training) -> None:
    training.write_metrics(6.0, math.nan)
    with pytest.raises(OutputsMissing, match="the loss of step 20 is nan"):
        check_outputs(training.storage, training.plan, 1, training.settings)
