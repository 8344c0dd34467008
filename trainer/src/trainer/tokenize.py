"""`python -m trainer.tokenize`: train a tokenizer on a staged dataset, or take one, and write the tokens."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from trainer.arguments import tokenize_parser
from trainer.config import TokenizerConfig
from trainer.console import say
from trainer.corpus import Corpus, Document
from trainer.errors import UserError
from trainer.failures import guarded
from trainer.files import Files, join
from trainer.plan import read_plan
from trainer.shards import ShardWriter, token_type
from trainer.token_parts import TokenParts, are_shared, joined
from trainer.vocabulary import load_tokenizer, train_vocabulary, wrap, write_vocabulary


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    values = tokenize_parser().parse_strictly(arguments)
    return guarded(lambda: tokenize(Files(), values.dataset, values.output, values.config))


def tokenize(files: Files, dataset: str, output: str, plan: str) -> int:
    """Write tokenizer, token shards and, last, the manifest into `output`, unless the manifest is there already."""
    config = read_plan(files, plan, TokenizerConfig, "tokenizer")
    if files.read_json(join(output, "manifest.json")) is not None:
        say(f"nothing to do: {join(output, 'manifest.json')} exists already")
        return 0
    corpus = Corpus(files, dataset, pairs=config.documents == "pairs")
    started = time.monotonic()
    wrapped = _tokenizer(files, corpus, config)
    say(f"tokenizer: {len(wrapped)} tokens, ready after {time.monotonic() - started:.1f} s")
    write_vocabulary(wrapped, files, join(output, "tokenizer"))
    manifest = _write_tokens(files, output, corpus, config, wrapped)
    # Two jobs at once write the same bytes; the manifest of the first one stands.
    files.write_json(join(output, "manifest.json"), manifest, only_new=True)
    say(
        f"tokens: {manifest['train']['tokens']:,} to train on, {manifest['heldout']['tokens']:,} held out, "
        f"{manifest['bytes_per_token']:.2f} bytes per token, unigram entropy {manifest['unigram_entropy']:.3f} nats, "
        f"in {time.monotonic() - started:.1f} s"
    )
    return 0


def _tokenizer(files: Files, corpus: Corpus, config: TokenizerConfig) -> Any:
    if config.init_from is None:
        return wrap(train_vocabulary(_train_texts(corpus, config), config.vocab_size))
    if config.vocab_size != TokenizerConfig().vocab_size:
        raise UserError(
            f"tokenizer.vocab_size: got {config.vocab_size}, but the tokenizer is that of tokenizer.init_from; leave "
            "it out"
        )
    return load_tokenizer(files, config.init_from, "tokenizer.init_from")


def _train_texts(corpus: Corpus, config: TokenizerConfig) -> Iterator[str]:
    for shard in corpus.shards():
        for document in shard:
            if not document.held_out(config.heldout_fraction):
                yield from filter(None, (document.prompt, document.text))


def _write_tokens(files: Files, output: str, corpus: Corpus, config: TokenizerConfig, wrapped: Any) -> dict[str, Any]:
    shape = {"vocab_size": len(wrapped), "end_of_text": wrapped.eos_token_id, "masked": config.documents == "pairs"}
    heldout = ShardWriter(files, output, "heldout", **shape)
    kept: list[tuple[str, list[int], int]] = []
    if are_shared(corpus, config):
        parts = TokenParts(files, output, config, wrapped.backend_tokenizer.to_str(), shape)
        found = parts.read_all(corpus, partial(_encoded, wrapped.backend_tokenizer))
        train, size = joined(found), sum(part["bytes"] for part in found)
        kept = [(key, tokens, prompt) for part in found for key, tokens, prompt in part["heldout"]]
    else:
        train, size = _write_train(files, output, corpus, config, wrapped, shape, kept)
    # By id: a hash mixes the documents, so that the first windows, on which models are compared, are of every kind.
    for _, tokens, prompt in sorted(kept):
        heldout.add(tokens, prompt=prompt)
    if not train["documents"] or not heldout.documents:
        raise UserError(
            f"tokenizer.heldout_fraction: {config.heldout_fraction} makes {train['documents']} documents to train on "
            f"and {heldout.documents} held out, and both need one; add documents or change the fraction"
        )
    manifest = {"train": train, "heldout": heldout.close()}
    return {
        "schema": 1,
        "dataset_sha16": corpus.sha16,
        "vocab_size": shape["vocab_size"],
        "dtype": token_type(shape["vocab_size"]),
        "end_of_text": shape["end_of_text"],
        **manifest,
        "unigram_entropy": entropy(heldout.counts),
        "bytes_per_token": size / sum(split["tokens"] for split in manifest.values()),
    }


def _write_train(
    files: Files,
    output: str,
    corpus: Corpus,
    config: TokenizerConfig,
    wrapped: Any,
    shape: dict[str, Any],
    kept: list[tuple[str, list[int], int]],
) -> tuple[dict[str, Any], int]:
    """Write what is trained on; put what is held out into `kept`. Return the split's manifest and the texts' bytes."""
    train, size = ShardWriter(files, output, "train", **shape), 0
    for shard in corpus.shards():
        for document, tokens, prompt in _encoded(wrapped.backend_tokenizer, shard):
            size += len(document.prompt.encode()) + len(document.text.encode())
            if document.held_out(config.heldout_fraction):
                kept.append((document.id, tokens, prompt))
            else:
                train.add(tokens, prompt=prompt)
    # Of none there is nothing to write: the user is told.
    return train.close() if train.documents else {"tokens": 0, "documents": 0, "shards": []}, size


def _encoded(tokenizer: Tokenizer, shard: list[Document]) -> Iterator[tuple[Document, list[int], int]]:
    """Each document, its tokens, and how many of them are of its prompt."""

    def encode(texts: list[str]) -> list[list[int]]:
        return [encoding.ids for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    prompts = encode([document.prompt for document in shard])
    texts = encode([document.text for document in shard])
    # Apart, so that no token spans the two: whoever asks the model later gives it the prompt alone.
    for document, prompt, text in zip(shard, prompts, texts, strict=True):
        yield document, prompt + text, len(prompt)


def entropy(counts: npt.NDArray[np.int64]) -> float:
    """Entropy, in nats, of drawing one of the things counted."""
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


if __name__ == "__main__":
    raise SystemExit(main())
