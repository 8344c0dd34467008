"""Token shards: little-endian integers, documents separated by the end-of-text token.

Where only some tokens are learnt, a shard has a mask beside it: one byte a token, 1 for a token that the loss counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.errors import UserError
from trainer.files import Files, crc32c, join, resolve

Tokens = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
Mask = npt.NDArray[np.uint8]
SHARD_TOKENS = 4_000_000
"""Tokens in a full shard: under 8 MiB of uint16, so that it is uploaded in a single request."""
_MANIFEST_KEYS = ("vocab_size", "dtype", "end_of_text", "train", "heldout", "unigram_entropy")


def token_type(vocab_size: int) -> str:
    """Name of the integer type that holds every token of the vocabulary."""
    return "uint16" if vocab_size <= 2**16 else "uint32"


class ShardWriter:
    """Writes the tokens of one split into shards of limited size, and counts what a manifest tells of them."""

    def __init__(
        self, files: Files, folder: str, split: str, *, vocab_size: int, end_of_text: int, masked: bool = False
    ) -> None:
        self._files = files
        self._folder = folder
        self._split = split
        self._type = np.dtype(token_type(vocab_size)).newbyteorder("<")
        self._end_of_text = end_of_text
        self._masked = masked
        self._pending: list[npt.NDArray[Any]] = []
        self._pending_masks: list[Mask] = []
        self._pending_tokens = 0
        self._shards: list[dict[str, Any]] = []
        self.documents = 0
        self.tokens = 0
        self.counts: npt.NDArray[np.int64] = np.zeros(vocab_size, dtype=np.int64)
        """How often each token stands among those that the loss counts."""

    def add(self, tokens: Sequence[int], *, prompt: int = 0) -> None:
        """Append one document; its first `prompt` tokens are not learnt."""
        document = np.array([*tokens, self._end_of_text], dtype=self._type)
        self.documents += 1
        self.tokens += len(document)
        self.counts += np.bincount(document[prompt:], minlength=len(self.counts))
        self._pending.append(document)
        self._pending_masks.append((np.arange(len(document)) >= prompt).astype(np.uint8))
        self._pending_tokens += len(document)
        if self._pending_tokens >= SHARD_TOKENS:
            self._flush()

    def close(self) -> dict[str, Any]:
        """Write what is pending, and return the split's part of the manifest."""
        if self._pending or not self._shards:
            self._flush()
        return {"tokens": self.tokens, "documents": self.documents, "shards": self._shards}

    def _flush(self) -> None:
        data = b"".join(document.tobytes() for document in self._pending)
        stem = f"{self._split}-{len(self._shards):05d}"
        shard = {**self._write(f"{stem}.bin", data), "tokens": len(data) // self._type.itemsize}
        if self._masked:
            shard["mask"] = self._write(f"{stem}.mask", b"".join(mask.tobytes() for mask in self._pending_masks))
        self._shards.append(shard)
        self._pending, self._pending_masks, self._pending_tokens = [], [], 0

    def _write(self, name: str, data: bytes) -> dict[str, Any]:
        self._files.write(join(self._folder, name), data)
        return {"name": name, "bytes": len(data), "crc32c": crc32c(data)}


def read_manifest(files: Files, folder: str) -> dict[str, Any]:
    """Read the manifest of a folder of tokens.

    :raises UserError: when there is none, or it is not one.
    """
    uri = join(folder, "manifest.json")
    manifest = files.read_json(uri)
    if manifest is None:
        raise UserError(f"--tokens: {uri}: no such object; run python -m trainer.tokenize first")
    missing = [key for key in _MANIFEST_KEYS if not isinstance(manifest, Mapping) or key not in manifest]
    if missing:
        raise UserError(
            f"--tokens: {uri}: not a manifest of tokens: it lacks {', '.join(missing)}; name another folder"
        )
    return dict(manifest)


def read_tokens(files: Files, folder: str, manifest: dict[str, Any], split: str) -> Tokens:
    """Read all tokens of a split.

    :raises UserError: when a shard is missing or not what the manifest says.
    """
    kind = np.dtype(manifest["dtype"]).newbyteorder("<")
    shards = manifest[split]["shards"]
    return np.concatenate([np.frombuffer(_read(files, folder, shard), dtype=kind) for shard in shards])


def read_mask(files: Files, folder: str, manifest: dict[str, Any], split: str) -> Mask | None:
    """Read which tokens of a split the loss counts; None when it counts all.

    :raises UserError: when a mask is missing or not what the manifest says.
    """
    masks = [shard.get("mask") for shard in manifest[split]["shards"]]
    if not all(masks):
        return None
    return np.concatenate([np.frombuffer(_read(files, folder, mask), dtype=np.uint8) for mask in masks])


def locate(shards: Sequence[Mapping[str, Any]], positions: Sequence[int]) -> str:
    """Say in which shards tokens lie that are counted over all of them, and where there."""
    ends = np.cumsum([shard["tokens"] for shard in shards])
    places: dict[str, list[int]] = {}
    for position in sorted(positions):
        number = int(np.searchsorted(ends, position, side="right"))
        begin = int(ends[number]) - int(shards[number]["tokens"])
        places.setdefault(str(shards[number]["name"]), []).append(position - begin)
    return "; ".join(f"{name} at tokens {', '.join(map(str, found))}" for name, found in places.items())


def _read(files: Files, folder: str, item: Mapping[str, Any]) -> bytes:
    uri = resolve(folder, item["name"])
    data = files.read(uri)
    if data is None or crc32c(data) != item["crc32c"]:
        what = "no such object" if data is None else "corrupt"
        raise UserError(f"{uri}: {what}, by the manifest beside it; delete the folder and tokenize again")
    return data
