from __future__ import annotations

from typing import Any

import pytest
import torch

from trainer.config import ModelConfig
from trainer.errors import UserError
from trainer.model import build_model

SHAPE: dict[str, Any] = {"hidden_size": 32, "layers": 2, "heads": 2, "context": 16}


def build(**changes: Any) -> torch.nn.Module:
    return build_model(ModelConfig(**{**SHAPE, **changes}), vocab_size=300, end_of_text=0, seed=0)


@pytest.mark.parametrize(
    "family", ["llama", "gpt2", "qwen2", "qwen3", "mistral", "gemma", "gpt_neox", "phi", "opt", "bloom"]
)
def test_every_family_answers_logits_for_each_token(family: str) -> None:
    logits = build(family=family)(input_ids=torch.zeros(2, 16, dtype=torch.long), use_cache=False).logits

    assert logits.shape == (2, 16, 300)


def test_the_demos_model_has_about_a_million_parameters() -> None:
    model = build_model(ModelConfig(), vocab_size=2048, end_of_text=0, seed=0)

    assert sum(parameter.numel() for parameter in model.parameters()) == 1_066_112


def test_the_same_seed_gives_the_same_weights() -> None:
    first, second = build().state_dict(), build().state_dict()

    assert all(torch.equal(first[name], second[name]) for name in first)


def test_settings_reach_the_config_of_the_family_and_win() -> None:
    model: Any = build(settings={"rms_norm_eps": 0.5, "num_hidden_layers": 3})

    assert (model.config.rms_norm_eps, model.config.num_hidden_layers, len(model.model.layers)) == (0.5, 3, 3)


def test_embeddings_are_tied_unless_asked_otherwise() -> None:
    def parameters(**changes: Any) -> int:
        return sum(parameter.numel() for parameter in build(**changes).parameters())

    assert parameters(tie_embeddings=False) - parameters() == 300 * 32


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heads": 3}, r"model\.heads: got 3; hidden_size 32"),
        ({"heads": 32}, r"model\.heads: got 32.*even"),
        ({"heads": 4, "kv_heads": 3}, r"model\.kv_heads: got 3; it must divide heads 4"),
        ({"family": "gpt2", "kv_heads": 1}, r"model\.kv_heads: gpt2"),
        ({"family": "lama"}, r"model\.family: got 'lama'; allowed: .*, llama, .*; did you mean 'llama'\?"),
        ({"family": "xlnet"}, r"trainer\.model: transformers builds no xlnet of this shape"),
        ({"family": "bert-large"}, r"model\.family: got 'bert-large'"),
        ({"family": "bloom", "intermediate_size": 64}, r"model: bloom has no intermediate_size; leave it out"),
        ({"settings": {"rope_teta": 1.0}}, r"settings\.rope_teta: the config of llama has no such key"),
        ({"settings": {"num_hidden_layers": "two"}}, r"trainer\.model: transformers builds no llama of this shape"),
    ],
)
def test_an_impossible_shape_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        build(**changes)
