"""Trains the tokenizer: byte-level byte-pair encoding."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from tokenizers.trainers import BpeTrainer
from transformers import PreTrainedTokenizerFast
from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

from trainer.files import Files

END_OF_TEXT = "<|endoftext|>"


def train_vocabulary(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """Train a tokenizer of at most `vocab_size` tokens; the end-of-text token is number 0.

    The same texts give the same tokenizer.
    """
    tokenizer = Tokenizer(models.BPE())
    # The split of Qwen2, for every family: transformers forces it on folders of Qwen2 models, whatever they say, and
    # one tokenizer must mean the same in all of them.
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PRETOKENIZE_REGEX), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def write_vocabulary(tokenizer: Tokenizer, files: Files, folder: str) -> None:
    """Write the tokenizer as a Hugging Face folder."""
    wrapper: Any = PreTrainedTokenizerFast
    wrapped = wrapper(tokenizer_object=tokenizer, bos_token=END_OF_TEXT, eos_token=END_OF_TEXT, pad_token=END_OF_TEXT)
    with tempfile.TemporaryDirectory() as temporary:
        wrapped.save_pretrained(temporary)
        files.upload_folder(Path(temporary), folder)
