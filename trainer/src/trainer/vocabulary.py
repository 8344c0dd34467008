"""The tokenizer: byte-level byte-pair encoding that is trained here, or one of a Hugging Face folder."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from tokenizers.trainers import BpeTrainer
from transformers import PreTrainedTokenizerFast
from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

from trainer.errors import UserError
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


def wrap(tokenizer: Tokenizer) -> Any:
    """Return the tokenizer as transformers knows it."""
    wrapper: Any = PreTrainedTokenizerFast
    return wrapper(tokenizer_object=tokenizer, bos_token=END_OF_TEXT, eos_token=END_OF_TEXT, pad_token=END_OF_TEXT)


def write_vocabulary(wrapped: Any, files: Files, folder: str) -> None:
    """Write the tokenizer as a Hugging Face folder."""
    with tempfile.TemporaryDirectory() as temporary:
        wrapped.save_pretrained(temporary)
        files.upload_folder(Path(temporary), folder)


def load_tokenizer(files: Files, uri: str, key: str) -> Any:
    """Load the tokenizer of a Hugging Face folder; `key` is what the folder was given as.

    :raises UserError: when the folder has none.
    """
    # Imported here: it brings torch, of which making tokens needs nothing.
    from transformers import AutoTokenizer

    with tempfile.TemporaryDirectory() as temporary:
        download_model(files, uri, Path(temporary), key, needed="tokenizer_config.json")
        auto: Any = AutoTokenizer
        try:
            tokenizer = auto.from_pretrained(temporary, local_files_only=True)
        except (OSError, ValueError, KeyError, ImportError) as error:
            raise UserError(f"{key}: {uri}: transformers loads no tokenizer from it: {error}") from error
    if not tokenizer.is_fast or tokenizer.eos_token_id is None:
        raise UserError(f"{key}: {uri}: a tokenizer with tokenizer.json and an end-of-text token (eos_token) is needed")
    return tokenizer


def download_model(files: Files, uri: str, folder: Path, key: str, *, needed: str) -> None:
    """Copy a Hugging Face folder here.

    :raises UserError: when it lacks the file `needed`.
    """
    if needed not in files.download_folder(uri, folder):
        raise UserError(f"{key}: {uri}: no {needed} in it; name a Hugging Face folder, gs:// or local")
