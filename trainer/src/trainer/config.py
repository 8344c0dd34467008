"""The two keys of a plan that the trainer reads: `tokenizer` and `trainer`.

Unknown keys, wrong types and values out of range raise UserError with the file, the key and the nearest match.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from trainer.errors import UserError, nearest

Config = TypeVar("Config")


def limited(default: Any, *, least: float | None = None, most: float | None = None, above: float | None = None) -> Any:
    """Make a field with a default and a range: at least, at most, or greater than."""
    return field(default=default, metadata={"least": least, "most": most, "above": above})


def chosen(default: str, *choices: str) -> Any:
    """Make a field that takes one of a few words."""
    return field(default=default, metadata={"choices": choices})


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig:
    """How text becomes tokens, and which documents are held out."""

    kind: str = chosen("bpe", "bpe")
    """Kind of tokenizer: byte-level byte-pair encoding."""
    vocab_size: int = limited(2048, least=257, most=1_000_000)
    """Most tokens in the vocabulary: 256 bytes, the end-of-text token, and merges."""
    heldout_fraction: float = limited(0.05, above=0.0, most=0.5)
    """Share of the documents that is kept for evaluation."""
    seed: int = limited(0, least=0)
    """Only part of the tokenizer's identity: training it uses no randomness."""
    documents: str = chosen("text", "text", "pairs")
    """What a document is: text to learn whole; or pairs, lines of JSON that each hold a `prompt` and a `response`, of
    which the response alone is learnt (supervised fine-tuning) and each pair is held out or not by itself."""
    init_from: str | None = None
    """Hugging Face folder, gs:// or local, whose tokenizer is taken; default: one is trained on the documents."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Shape of the model."""

    family: str = "llama"
    """Architecture: any Hugging Face model type that transformers has a causal language model for, such as llama, gpt2,
    qwen2, mistral."""
    hidden_size: int = limited(128, least=8)
    """Width of the residual stream, in values."""
    layers: int = limited(4, least=1)
    """Number of transformer blocks."""
    heads: int = limited(4, least=1)
    """Number of attention heads; divides hidden_size into heads of an even width."""
    kv_heads: int | None = limited(None, least=1)
    """Number of heads of keys and values; default as many as heads. Not for gpt2."""
    intermediate_size: int | None = limited(None, least=1)
    """Width of the feed-forward layer, in values; default 8/3 of hidden_size (4 times for gpt2)."""
    context: int = limited(128, least=2)
    """Longest sequence, in tokens."""
    dropout: float = limited(0.0, least=0.0, most=0.9)
    """Share of values that is dropped while training."""
    tie_embeddings: bool | None = None
    """Share the weights of the input and output embeddings; default for hidden_size under 2048."""
    settings: dict[str, Any] = field(default_factory=dict)
    """More keys of the family's Hugging Face config, such as {"rope_theta": 1000000.0}; they win over the keys here."""


@dataclass(frozen=True, kw_only=True)
class TrainerConfig:
    """What to train and for how long."""

    model: ModelConfig = field(default_factory=ModelConfig)
    """Shape of the model."""
    init_from: str | None = None
    """Hugging Face folder, gs:// or local, of a model to go on from instead of random weights; of `model` only
    `context` may then be given, and the tokens must be of the folder's tokenizer."""
    strategy: str = chosen("auto", "auto", "single", "ddp", "fsdp", "parameter_server")
    """How replicas share the work: single (one process), ddp (each holds the whole model, gradients are averaged), fsdp
    (weights, gradients and moments are sharded over them), parameter_server (servers own shards of weights and of
    moments, workers send gradients); auto takes parameter_server where the cluster has parameter servers, else ddp for
    more than one replica."""
    steps: int = limited(600, least=1)
    """Number of optimizer steps."""
    batch_size: int = limited(16, least=1)
    """Sequences of `context` tokens in one step, over all replicas together."""
    learning_rate: float = limited(0.003, above=0.0, most=10.0)
    """Highest learning rate of AdamW, reached after the warmup; it falls to a tenth in a cosine."""
    warmup_steps: int = limited(50, least=0)
    """Steps in which the learning rate rises linearly."""
    weight_decay: float = limited(0.1, least=0.0)
    """Decoupled weight decay of the matrices, as a multiple of the learning rate."""
    grad_clip: float = limited(1.0, least=0.0)
    """Largest Euclidean norm of the whole gradient; 0 does not clip."""
    seed: int = limited(0, least=0)
    """Seed of the first weights and of the order of the data."""
    eval_every: int = limited(200, least=0)
    """Steps between evaluations; 0 evaluates only before and after."""
    eval_batches: int = limited(32, least=1)
    """Batches of batch_size held-out windows in an evaluation during training."""
    checkpoint_every: int = limited(100, least=0)
    """Steps between checkpoints; 0 saves only the last and on preemption."""
    log_every: int = limited(10, least=1)
    """Steps between lines of metrics; the last step has one, too."""
    sample_prompt: str = "def "
    """Text that the model continues at the end; empty: the end-of-text token."""


def parse(kind: type[Config], data: object, *, source: str, key: str) -> Config:
    """Make a config of `kind` from JSON data.

    :raises UserError: when a key is unknown or a value does not fit.
    """
    if not isinstance(data, Mapping):
        raise UserError(f"{source}: {key}: expected a mapping, got {data!r}")
    fields = {item.name: item for item in dataclasses.fields(kind)}  # type: ignore[arg-type]
    hints = typing.get_type_hints(kind)
    values: dict[str, Any] = {}
    for name, value in data.items():
        if name not in fields:
            allowed = ", ".join(fields)
            raise UserError(f"{source}: {key}.{name}: unknown key; allowed: {allowed}{nearest(str(name), fields)}")
        values[name] = _value(hints[name], fields[name].metadata, value, source=source, key=f"{key}.{name}")
    return kind(**values)


def _value(hint: Any, limits: Mapping[str, Any], value: object, *, source: str, key: str) -> Any:
    if dataclasses.is_dataclass(hint):
        return parse(typing.cast(type[Any], hint), value, source=source, key=key)
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if value is None and type(None) in options:
        return None
    expected = typing.get_origin(options[0]) or options[0]
    if expected is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not expected:
        raise UserError(f"{source}: {key}: expected {expected.__name__}, got {value!r}")
    _check_range(limits, value, f"{source}: {key}")
    return value


def _check_range(limits: Mapping[str, Any], value: Any, where: str) -> None:
    if (choices := limits.get("choices")) and value not in choices:
        raise UserError(f"{where}: got {value!r}; allowed: {', '.join(choices)}{nearest(value, choices)}")
    if (least := limits.get("least")) is not None and not value >= least:
        raise UserError(f"{where}: got {value!r}; allowed: at least {least}")
    if (above := limits.get("above")) is not None and not value > above:
        raise UserError(f"{where}: got {value!r}; allowed: more than {above}")
    if (most := limits.get("most")) is not None and not value <= most:
        raise UserError(f"{where}: got {value!r}; allowed: at most {most}")
