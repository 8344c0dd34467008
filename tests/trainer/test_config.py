from __future__ import annotations

import pytest

from trainer.config import ModelConfig, TokenizerConfig, TrainerConfig, parse
from trainer.errors import UserError


def test_keys_left_out_take_their_defaults() -> None:
    config = parse(TrainerConfig, {"steps": 5, "model": {"layers": 3}}, source="plan.json", key="trainer")

    assert config == TrainerConfig(steps=5, model=ModelConfig(layers=3))


def test_a_whole_number_stands_for_a_float() -> None:
    assert (
        parse(TrainerConfig, {"grad_clip": 1}, source="plan.json", key="trainer").grad_clip == TrainerConfig().grad_clip
    )


def test_an_unknown_key_is_refused_with_its_place_and_the_nearest_key() -> None:
    with pytest.raises(UserError, match=r"plan\.json: trainer\.model\.layer: unknown key.*did you mean 'layers'\?"):
        parse(TrainerConfig, {"model": {"layer": 3}}, source="plan.json", key="trainer")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"steps": "5"}, "trainer.steps: expected int, got '5'"),
        ({"steps": True}, "trainer.steps: expected int, got True"),
        ({"steps": 0}, "trainer.steps: got 0; allowed: at least 1"),
        ({"steps": None}, "trainer.steps: expected int, got None"),
        ({"learning_rate": 0}, "trainer.learning_rate: got 0.0; allowed: more than 0.0"),
        ({"model": {"settings": []}}, "trainer.model.settings: expected dict, got []"),
        ({"init_from": 3}, "trainer.init_from: expected str, got 3"),
        ({"model": 3}, "trainer.model: expected a mapping, got 3"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(data: dict[str, object], message: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(TrainerConfig, data, source="plan.json", key="trainer")

    assert message in str(caught.value)


def test_only_kinds_of_tokenizer_that_exist_are_taken() -> None:
    with pytest.raises(UserError, match="allowed: bpe"):
        parse(TokenizerConfig, {"kind": "words"}, source="plan.json", key="tokenizer")


def test_a_kind_of_documents_is_named_when_it_is_misspelt() -> None:
    with pytest.raises(
        UserError, match=r"tokenizer\.documents: got 'pair'; allowed: text, pairs; did you mean 'pairs'"
    ):
        parse(TokenizerConfig, {"documents": "pair"}, source="plan.json", key="tokenizer")
