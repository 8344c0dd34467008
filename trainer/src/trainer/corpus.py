"""Reads a staged dataset: shards of documents behind a manifest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trainer.errors import UserError
from trainer.files import Files, crc32c, join

_SPLIT_PARTS = 10_000


@dataclass(frozen=True)
class Document:
    """One text; `id` is 16 hex digits of its hash."""

    id: str
    text: str

    def held_out(self, fraction: float) -> bool:
        """Whether the document is kept for evaluation: by its id alone, so the split is stable when data is added."""
        return int(self.id, 16) % _SPLIT_PARTS < fraction * _SPLIT_PARTS


class Corpus:
    """The documents of a staged dataset, read shard by shard so that it need not fit into memory.

    :raises UserError: when the dataset is not staged, or a shard is missing or not what the manifest says.
    """

    def __init__(self, files: Files, folder: str) -> None:
        self._files = files
        self._folder = folder
        manifest = files.read_json(join(folder, "manifest.json"))
        if manifest is None:
            raise UserError(f"{join(folder, 'manifest.json')}: no such object: the dataset is not staged")
        self._manifest: dict[str, Any] = manifest

    @property
    def sha16(self) -> str:
        """Identity of the dataset's content."""
        return str(self._manifest["sha16"])

    def shards(self) -> Iterator[list[Document]]:
        """Read the documents of one shard after the other."""
        for shard in self._manifest["shards"]:
            yield self._read_shard(join(self._folder, shard["name"]), shard)

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
        return [Document(item["id"], item["text"]) for item in map(json.loads, data.split(b"\n")[:-1])]
