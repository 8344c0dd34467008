"""Token shards: little-endian integers, documents separated by the end-of-text token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.errors import UserError
from trainer.files import Files, crc32c, join

Tokens = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
SHARD_TOKENS = 4_000_000
"""Tokens in a full shard: under 8 MiB of uint16, so that it is uploaded in a single request."""


def token_type(vocab_size: int) -> str:
    """Name of the integer type that holds every token of the vocabulary."""
    return "uint16" if vocab_size <= 2**16 else "uint32"


class ShardWriter:
    """Writes the tokens of one split into shards of limited size, and counts what a manifest tells of them."""

    def __init__(self, files: Files, folder: str, split: str, *, vocab_size: int, end_of_text: int) -> None:
        self._files = files
        self._folder = folder
        self._split = split
        self._type = np.dtype(token_type(vocab_size)).newbyteorder("<")
        self._end_of_text = end_of_text
        self._pending: list[npt.NDArray[Any]] = []
        self._pending_tokens = 0
        self._shards: list[dict[str, Any]] = []
        self.documents = 0
        self.counts: npt.NDArray[np.int64] = np.zeros(vocab_size, dtype=np.int64)

    def add(self, tokens: Sequence[int]) -> None:
        """Append one document."""
        document = np.array([*tokens, self._end_of_text], dtype=self._type)
        self.documents += 1
        self.counts += np.bincount(document, minlength=len(self.counts))
        self._pending.append(document)
        self._pending_tokens += len(document)
        if self._pending_tokens >= SHARD_TOKENS:
            self._flush()

    def close(self) -> dict[str, Any]:
        """Write what is pending, and return the split's part of the manifest."""
        if self._pending or not self._shards:
            self._flush()
        return {"tokens": int(self.counts.sum()), "documents": self.documents, "shards": self._shards}

    def _flush(self) -> None:
        data = b"".join(document.tobytes() for document in self._pending)
        name = f"{self._split}-{len(self._shards):05d}.bin"
        self._files.write(join(self._folder, name), data)
        self._shards.append({
            "name": name,
            "tokens": len(data) // self._type.itemsize,
            "bytes": len(data),
            "crc32c": crc32c(data),
        })
        self._pending, self._pending_tokens = [], 0


def read_tokens(files: Files, folder: str, manifest: dict[str, Any], split: str) -> Tokens:
    """Read all tokens of a split.

    :raises UserError: when a shard is missing or not what the manifest says.
    """
    parts = []
    for shard in manifest[split]["shards"]:
        uri = join(folder, shard["name"])
        data = files.read(uri)
        if data is None or crc32c(data) != shard["crc32c"]:
            what = "no such object" if data is None else "corrupt"
            raise UserError(f"{uri}: {what}, by the manifest beside it; delete the folder and tokenize again")
        parts.append(np.frombuffer(data, dtype=np.dtype(manifest["dtype"]).newbyteorder("<")))
    return np.concatenate(parts)
