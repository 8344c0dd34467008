"""A model to go on from: a Hugging Face folder instead of random weights."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

from trainer.config import ModelConfig
from trainer.console import say
from trainer.errors import UserError
from trainer.failures import out_of_memory
from trainer.files import Files, join
from trainer.job import Job
from trainer.model import build_model
from trainer.vocabulary import download_model, load_tokenizer

_PROBE = "def f(x):\n    return 'x' + x  # \u00e9\u4e2d, 1,234.5\t"
"""Text with words, spaces, digits and several scripts: tokenizers of one vocabulary may still split it differently."""


def first_model(files: Files, job: Job) -> torch.nn.Module:
    """Return the model that training begins with: the one of `init_from`, or one with random weights."""
    config, manifest = job.config, job.manifest
    if config.init_from is not None:
        return _load(files, job, config.init_from)
    return build_model(
        config.model, vocab_size=manifest["vocab_size"], end_of_text=manifest["end_of_text"], seed=config.seed
    )


def _load(files: Files, job: Job, uri: str) -> torch.nn.Module:
    _check_shape_is_not_given(job.config.model)
    with tempfile.TemporaryDirectory() as temporary:
        download_model(files, uri, Path(temporary), "trainer.init_from", needed="config.json")
        model = read_model(temporary, uri, "trainer.init_from")
    _check_tokenizer(files, job, uri)
    _check_room(job, model, uri)
    # Dropout draws from here on, as it does after drawing weights.
    torch.manual_seed(job.config.seed)
    found: torch.nn.Module = model
    return found


def _check_shape_is_not_given(model: ModelConfig) -> None:
    for item in dataclasses.fields(ModelConfig):
        default = {} if item.default is dataclasses.MISSING else item.default
        if item.name != "context" and getattr(model, item.name) != default:
            raise UserError(
                f"trainer.model.{item.name}: got {getattr(model, item.name)!r}, but the shape is that of "
                "trainer.init_from; leave it out: of trainer.model only context may be given"
            )


def read_model(folder: str, uri: str, key: str) -> Any:
    """Load a model from a local copy of `uri`, in float32; `key` is what the folder was given as.

    :raises UserError: when transformers loads none from it, or not all of its weights are there.
    """
    auto: Any = AutoModelForCausalLM
    # Progress bars overwrite their line, which makes noise in a log.
    quieten: Any = disable_progress_bar
    quieten()
    try:
        model, loading = auto.from_pretrained(
            folder, dtype=torch.float32, local_files_only=True, output_loading_info=True
        )
    except Exception as error:
        # transformers and the code of each family raise what they like, and all of it is about the folder.
        if out_of_memory(error):
            raise
        raise UserError(f"{key}: {uri}: transformers loads no model from it: {error}") from error
    if lacking := sorted(loading["missing_keys"]):
        raise UserError(
            f"{key}: {uri}: its weights lack {len(lacking)} of the model's, {lacking[0]} among them; they "
            "would be random. Name a complete folder"
        )
    if left := sorted(loading["unexpected_keys"]):
        say(f"warning: {uri}: {len(left)} weights are none of the model's and are left out, {left[0]} among them")
    return model


def _check_tokenizer(files: Files, job: Job, uri: str) -> None:
    folder = join(job.tokens, "tokenizer")
    theirs = load_tokenizer(files, uri, "trainer.init_from")
    ours = load_tokenizer(files, folder, "--tokens")
    if what := difference(ours, theirs):
        raise UserError(
            f"trainer.init_from: the tokenizer of {uri} is not that of {folder}: {what}; tokenize again with "
            f"tokenizer.init_from: {uri}"
        )


def difference(ours: Any, theirs: Any) -> str:
    """Say in what two tokenizers differ; an empty text when they cut every text into the same tokens."""
    differing = sorted(set(ours.get_vocab().items()) ^ set(theirs.get_vocab().items()), key=lambda item: item[::-1])
    if differing:
        return f"token {differing[0][1]} is {differing[0][0]!r} in only one of them"
    if ours.encode(_PROBE, add_special_tokens=False) != theirs.encode(_PROBE, add_special_tokens=False):
        return "they have the same tokens, but split text differently"
    return ""


def room_of(model: Any) -> int | None:
    """Most tokens that a model takes at once; None where its architecture sets no limit."""
    most: int | None = getattr(model.config, "max_position_embeddings", None)
    return most


def _check_room(job: Job, model: Any, uri: str) -> None:
    most = room_of(model)
    if most is not None and job.config.model.context > most:
        raise UserError(
            f"trainer.model.context: got {job.config.model.context}; the model of {uri} takes at most {most} tokens"
        )
    rows = model.get_input_embeddings().weight.shape[0]
    if job.manifest["vocab_size"] > rows:
        raise UserError(
            f"trainer.init_from: the model of {uri} has embeddings of {rows} tokens, its tokenizer "
            f"{job.manifest['vocab_size']}; resize its embeddings first"
        )
