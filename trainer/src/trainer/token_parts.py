"""Tokens of the parts that datasets share: made once for each part and tokenizer, whatever datasets hold the part.

Only where the tokenizer is named (`tokenizer.init_from`): one that is trained on the documents is another when some are
added, and so are all tokens.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from trainer.config import TokenizerConfig
from trainer.console import say
from trainer.corpus import Corpus, Document
from trainer.files import Files, resolve
from trainer.shards import ShardWriter

VERSION = 1
"""Raised when the same part and tokenizer would give other tokens."""

Encoded = tuple[Document, list[int], int]
"""A document, its tokens, and how many of them are of its prompt."""
Encode = Callable[[list[Document]], Iterable[Encoded]]


def are_shared(corpus: Corpus, config: TokenizerConfig) -> bool:
    """Whether the tokens of the dataset's parts are the same in every dataset with the part."""
    return config.init_from is not None and all(shard["name"].startswith("../") for shard in corpus.entries)


class TokenParts:
    """The tokens of parts, in a folder beside those of datasets.

    :param output: folder of the dataset's tokens.
    :param shape: what a ShardWriter takes.
    """

    def __init__(
        self, files: Files, output: str, config: TokenizerConfig, tokenizer: str, shape: dict[str, Any]
    ) -> None:
        identity = [VERSION, tokenizer, config.heldout_fraction, config.documents, shape]
        self._name = f"../parts/{hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]}"
        self._files, self._output, self._shape = files, output, shape
        self._fraction = config.heldout_fraction

    def read_all(self, corpus: Corpus, encode: Encode) -> list[dict[str, Any]]:
        """Return the tokens of every part, in order: written ones to train on, and those held out as they are."""
        made = 0
        found = []
        for shard in corpus.entries:
            uri = resolve(self._output, f"{self._stem(shard)}.json")
            part = self._files.read_json(uri)
            if part is None:
                part = self._make(shard, encode(corpus.read_shard(shard)))
                self._files.write_json(uri, part)
                made += 1
            found.append(part)
        say(f"tokens: {made} parts are new, {len(found) - made} were there")
        return found

    def _stem(self, shard: Mapping[str, Any]) -> str:
        """A part's name is the hash of its bytes; what a dataset leaves out of it makes other tokens."""
        part = shard["name"].rpartition("/")[2].removesuffix(".jsonl")
        skip = shard.get("skip")
        return f"{self._name}/{part}" + (
            f"-{hashlib.sha256(json.dumps(skip).encode()).hexdigest()[:16]}" if skip else ""
        )

    def _make(self, shard: Mapping[str, Any], encoded: Iterable[Encoded]) -> dict[str, Any]:
        folder, _, stem = self._stem(shard).rpartition("/")
        train = ShardWriter(self._files, resolve(self._output, folder), f"{stem}-train", **self._shape)
        heldout: list[tuple[str, list[int], int]] = []
        size = 0
        for document, tokens, prompt in encoded:
            size += len(document.prompt.encode()) + len(document.text.encode())
            if document.held_out(self._fraction):
                heldout.append((document.id, tokens, prompt))
            else:
                train.add(tokens, prompt=prompt)
        written: dict[str, Any] = train.close() if train.documents else {"tokens": 0, "documents": 0, "shards": []}
        for one in written["shards"]:
            for item in filter(None, (one, one.get("mask"))):
                item["name"] = f"{folder}/{item['name']}"
        return {"schema": 1, "bytes": size, "train": written, "heldout": heldout}


def joined(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the manifest's part of the split that is trained on."""
    train: dict[str, Any] = {"tokens": 0, "documents": 0, "shards": []}
    for part in parts:
        for key in train:
            train[key] += part["train"][key]
    return train
