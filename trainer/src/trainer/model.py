"""Builds the model from Hugging Face classes."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from trainer.config import ModelConfig
from trainer.errors import UserError, nearest
from trainer.failures import out_of_memory

TIED_BELOW = 2048
"""Width under which embeddings are tied by default: there they would be most of the parameters."""


def build_model(config: ModelConfig, *, vocab_size: int, end_of_text: int, seed: int) -> torch.nn.Module:
    """Build the model with weights drawn from `seed`.

    :raises UserError: when there is no such family, or the shape is impossible.
    """
    families = sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    if config.family not in families:
        raise UserError(
            f"trainer.model.family: got {config.family!r}; allowed: {', '.join(families)}"
            f"{nearest(config.family, families)}"
        )
    _check_shape(config)
    torch.manual_seed(seed)
    try:
        return _build(config, vocab_size, end_of_text)
    except UserError:
        raise
    except Exception as error:
        # Each family checks its config in its own way, or not at all: any error here is about the shape.
        if out_of_memory(error):
            raise
        raise UserError(
            f"trainer.model: transformers builds no {config.family} of this shape: {error}; keys of the "
            "family's own go into trainer.model.settings"
        ) from error


def _build(config: ModelConfig, vocab_size: int, end_of_text: int) -> torch.nn.Module:
    tied = config.hidden_size < TIED_BELOW if config.tie_embeddings is None else config.tie_embeddings
    settings: dict[str, Any] = {
        "vocab_size": vocab_size,
        "tie_word_embeddings": tied,
        "bos_token_id": end_of_text,
        "eos_token_id": end_of_text,
        "pad_token_id": end_of_text,
        **_shape(config),
    }
    # A fixed type: with "auto" the weights would take that of a checkpoint.
    architecture: Any = AutoModelForCausalLM
    model: torch.nn.Module = architecture.from_config(
        AutoConfig.for_model(config.family, **settings), dtype=torch.float32
    )
    return model


def _check_shape(config: ModelConfig) -> None:
    if config.hidden_size % config.heads or config.hidden_size // config.heads % 2:
        raise UserError(
            f"trainer.model.heads: got {config.heads}; hidden_size {config.hidden_size} must split into heads of an "
            "even width"
        )
    if config.kv_heads and config.heads % config.kv_heads:
        raise UserError(f"trainer.model.kv_heads: got {config.kv_heads}; it must divide heads {config.heads}")
    if config.kv_heads and config.family == "gpt2":
        raise UserError("trainer.model.kv_heads: gpt2 has as many of them as heads; leave it out or choose llama")


def _shape(config: ModelConfig) -> dict[str, Any]:
    known: Any = AutoConfig.for_model(config.family)
    for key in config.settings:
        if not hasattr(known, key):
            names = sorted(known.to_dict())
            raise UserError(
                f"trainer.model.settings.{key}: the config of {config.family} has no such key; allowed: "
                f"{', '.join(names)}{nearest(key, names)}"
            )
    if config.family == "gpt2":
        return {**_gpt2(config), **config.settings}
    shape = _common(config)
    asked: dict[str, Any] = {
        "num_key_value_heads": config.kv_heads,
        "intermediate_size": config.intermediate_size,
        "attention_dropout": config.dropout,
    }
    for key in [key for key in shape if not hasattr(known, key)]:
        if asked.get(key):
            raise UserError(
                f"trainer.model: {config.family} has no {key}; leave it out, or give the family's own keys in "
                "trainer.model.settings"
            )
        del shape[key]
    return {**shape, **config.settings}


def _common(config: ModelConfig) -> dict[str, Any]:
    """The shape in the names that nearly every family has."""
    return {
        "hidden_size": config.hidden_size,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads or config.heads,
        # Three matrices of 8/3 of the width hold as many parameters as two of four times the width.
        "intermediate_size": config.intermediate_size or -(-config.hidden_size * 8 // 3 // 32) * 32,
        "max_position_embeddings": config.context,
        "attention_dropout": config.dropout,
    }


def _gpt2(config: ModelConfig) -> dict[str, Any]:
    return {
        "n_embd": config.hidden_size,
        "n_layer": config.layers,
        "n_head": config.heads,
        "n_inner": config.intermediate_size,
        "n_positions": config.context,
        "resid_pdrop": config.dropout,
        "embd_pdrop": config.dropout,
        "attn_pdrop": config.dropout,
    }
