"""Reads a staged dataset: shards of documents behind a manifest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainer.errors import UserError, nearest
from trainer.files import Files, crc32c, join, resolve

_SPLIT_PARTS = 10_000
_PAIR_KEYS = ("prompt", "response")


@dataclass(frozen=True)
class Document:
    """One text; `id` is 16 hex digits of its hash."""

    id: str
    text: str
    prompt: str = ""
    """What stands before the text and is not learnt."""

    def held_out(self, fraction: float) -> bool:
        """Whether the document is kept for evaluation: by its id alone, so the split is stable when data is added."""
        return int(self.id, 16) % _SPLIT_PARTS < fraction * _SPLIT_PARTS


class Corpus:
    """The documents of a staged dataset, read shard by shard so that it need not fit into memory.

    With `pairs` the staged texts are lines of JSON, and each line is a document with a prompt.

    :raises UserError: when the dataset is not staged, or a shard is missing or not what the manifest says.
    """

    def __init__(self, files: Files, folder: str, *, pairs: bool = False) -> None:
        self._files = files
        self._folder = folder
        self._pairs = pairs
        uri = join(folder, "manifest.json")
        manifest = files.read_json(uri)
        if manifest is None:
            raise UserError(f"{uri}: no such object: the dataset is not staged")
        if not isinstance(manifest, Mapping) or not {"sha16", "shards"} <= set(manifest):
            raise UserError(f"{uri}: not the manifest of a staged dataset; name another folder")
        self._manifest = manifest

    @property
    def sha16(self) -> str:
        """Identity of the dataset's content."""
        return str(self._manifest["sha16"])

    def shards(self) -> Iterator[list[Document]]:
        """Read the documents of one shard after the other."""
        for shard in self._manifest["shards"]:
            yield self.read_shard(shard)

    @property
    def entries(self) -> list[dict[str, Any]]:
        """What the manifest says of each shard."""
        return list(self._manifest["shards"])

    def read_shard(self, shard: dict[str, Any]) -> list[Document]:
        """Read the documents of one shard."""
        return self._read_shard(resolve(self._folder, shard["name"]), shard)

    def _read_shard(self, uri: str, shard: dict[str, Any]) -> list[Document]:
        data = self._files.read(uri)
        if data is None:
            raise UserError(f"{uri}: no such object, though the manifest names it; stage the dataset again")
        if crc32c(data) != shard["crc32c"]:
            raise UserError(
                f"{uri}: corrupt: CRC-32C is {crc32c(data)}, the manifest says {shard['crc32c']}; "
                "delete the folder and stage the dataset again"
            )
        # Split at \n alone: documents may hold other line separators, which JSON does not escape.
        seen_before = set(shard.get("skip", ()))
        lines = (line for place, line in enumerate(data.split(b"\n")[:-1]) if place not in seen_before)
        items = map(json.loads, lines)
        if self._pairs:
            return [pair for item in items for pair in read_pairs(item["text"], item.get("source", uri))]
        return [Document(item["id"], item["text"]) for item in items]


def read_pairs(text: str, source: str) -> Iterator[Document]:
    """Read lines of `{"prompt": ..., "response": ...}`; a pair's id is the hash of its two texts.

    :raises UserError: a line is no such pair, or its response is empty.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            prompt, response = _pair(line, f"{source}: line {number}")
            identity = json.dumps([prompt, response]).encode()
            yield Document(hashlib.sha256(identity).hexdigest()[:16], response, prompt)


def _pair(line: str, where: str) -> tuple[str, str]:
    try:
        pair = json.loads(line)
    except ValueError as error:
        raise UserError(f'{where}: not JSON: {error}; expected {{"prompt": "...", "response": "..."}}') from None
    if not isinstance(pair, dict):
        raise UserError(f'{where}: expected {{"prompt": "...", "response": "..."}}, got {pair!r:.80}')
    for key in pair:
        if key not in _PAIR_KEYS:
            raise UserError(f"{where}: {key}: unknown key; allowed: prompt, response{nearest(key, _PAIR_KEYS)}")
    prompt, response = pair.get("prompt"), pair.get("response")
    if not isinstance(prompt, str) or not isinstance(response, str) or not response:
        raise UserError(f"{where}: prompt and response must be text, and response not empty")
    return prompt, response
