"""`python -m trainer.tokenize`: train a tokenizer on a staged dataset and write its tokens."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from trainer.arguments import tokenize_parser
from trainer.config import TokenizerConfig, parse
from trainer.console import say
from trainer.corpus import Corpus, Document
from trainer.errors import UserError, guarded
from trainer.files import Files, join
from trainer.shards import ShardWriter, token_type
from trainer.vocabulary import END_OF_TEXT, train_vocabulary, write_vocabulary


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    values = tokenize_parser().parse_strictly(arguments)
    return guarded(lambda: tokenize(Files(), values.dataset, values.output, values.config))


def tokenize(files: Files, dataset: str, output: str, plan: str) -> int:
    """Write tokenizer, token shards and, last, the manifest into `output`, unless the manifest is there already."""
    config = _read_config(files, plan)
    if files.read_json(join(output, "manifest.json")) is not None:
        say(f"nothing to do: {join(output, 'manifest.json')} exists already")
        return 0
    corpus = Corpus(files, dataset)
    started = time.monotonic()
    tokenizer = train_vocabulary(_train_texts(corpus, config), config.vocab_size)
    say(f"tokenizer: {tokenizer.get_vocab_size()} tokens, trained in {time.monotonic() - started:.1f} s")
    write_vocabulary(tokenizer, files, join(output, "tokenizer"))
    manifest = _write_tokens(files, output, corpus, config, tokenizer)
    # Two jobs at once write the same bytes; the manifest of the first one stands.
    files.write_json(join(output, "manifest.json"), manifest, only_new=True)
    say(
        f"tokens: {manifest['train']['tokens']:,} to train on, {manifest['heldout']['tokens']:,} held out, "
        f"{manifest['bytes_per_token']:.2f} bytes per token, unigram entropy {manifest['unigram_entropy']:.3f} nats, "
        f"in {time.monotonic() - started:.1f} s"
    )
    return 0


def _read_config(files: Files, plan: str) -> TokenizerConfig:
    data = files.read_json(plan)
    if data is None:
        raise UserError(f"--config: {plan}: no such object")
    return parse(TokenizerConfig, data.get("tokenizer", {}), source=plan, key="tokenizer")


def _train_texts(corpus: Corpus, config: TokenizerConfig) -> Iterator[str]:
    for shard in corpus.shards():
        yield from (document.text for document in shard if not document.held_out(config.heldout_fraction))


def _write_tokens(
    files: Files, output: str, corpus: Corpus, config: TokenizerConfig, tokenizer: Tokenizer
) -> dict[str, Any]:
    vocab_size, end_of_text = tokenizer.get_vocab_size(), tokenizer.get_vocab()[END_OF_TEXT]
    train = ShardWriter(files, output, "train", vocab_size=vocab_size, end_of_text=end_of_text)
    heldout = ShardWriter(files, output, "heldout", vocab_size=vocab_size, end_of_text=end_of_text)
    kept: list[tuple[str, list[int]]] = []
    size = 0
    for document, tokens in _encoded(corpus, tokenizer):
        size += len(document.text.encode())
        if document.held_out(config.heldout_fraction):
            kept.append((document.id, tokens))
        else:
            train.add(tokens)
    # By id: a hash mixes the documents, so that the first windows, on which models are compared, are of every kind.
    for _, tokens in sorted(kept):
        heldout.add(tokens)
    if not train.documents or not heldout.documents:
        raise UserError(
            f"tokenizer.heldout_fraction: {config.heldout_fraction} makes {train.documents} documents to train on and "
            f"{heldout.documents} held out, and both need one; add documents or change the fraction"
        )
    manifest = {"train": train.close(), "heldout": heldout.close()}
    return {
        "schema": 1,
        "dataset_sha16": corpus.sha16,
        "vocab_size": vocab_size,
        "dtype": token_type(vocab_size),
        "end_of_text": end_of_text,
        **manifest,
        "unigram_entropy": entropy(heldout.counts),
        "bytes_per_token": size / sum(split["tokens"] for split in manifest.values()),
    }


def _encoded(corpus: Corpus, tokenizer: Tokenizer) -> Iterator[tuple[Document, list[int]]]:
    for shard in corpus.shards():
        encodings = tokenizer.encode_batch_fast([document.text for document in shard], add_special_tokens=False)
        for document, encoding in zip(shard, encodings, strict=True):
            yield document, encoding.ids


def entropy(counts: npt.NDArray[np.int64]) -> float:
    """Entropy, in nats, of drawing one of the things counted."""
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


if __name__ == "__main__":
    raise SystemExit(main())
