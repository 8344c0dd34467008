"""Source files that are objects of a bucket; size, CRC32C and generation come with the listing."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from trainops.errors import NotFoundError
from trainops.gcp.storage import ObjectInfo, Storage
from trainops.steps.staging.source import SourceFile, Verified, Wanted, changed

BLOCK = 8 * 1024 * 1024
"""Bytes that one request asks for; an object is in memory one block at a time."""


class Bucket:
    """Objects below a gs:// prefix."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def find(self, folder: str, wanted: Wanted, pruned: Wanted) -> list[SourceFile] | None:
        """See `Source.find`."""
        del pruned  # a listing has no folders to leave out
        root = folder.rstrip("/")
        try:
            items = [item for item in self._storage.list(f"{root}/") if not item.uri.endswith("/")]
            if not items and root.count("/") > 2 and (single := self._storage.info(root)) is not None:
                return [_file(PurePosixPath(root).name, single)]
        except NotFoundError:
            return None
        named = [(item.uri.removeprefix(f"{root}/"), item) for item in items]
        return [_file(name, item) for name, item in named if wanted(name)] if items else None

    def folders(self, folder: str) -> list[str]:
        """See `Source.folders`."""
        try:
            return list(self._storage.folders(folder))
        except NotFoundError:
            return []

    def fingerprinted(self, file: SourceFile) -> SourceFile:
        """See `Source.fingerprinted`; the listing told."""
        return file

    @contextmanager
    def open(self, file: SourceFile) -> Generator[Verified]:
        """See `Source.open`."""
        raw = io.BufferedReader(cast("Any", _Blocks(self._storage, file)), min(BLOCK, file.size + 1))
        yield Verified(cast("BinaryIO", raw), file)

    @contextmanager
    def on_disk(self, file: SourceFile) -> Generator[Path]:
        """See `Source.on_disk`; the storage client verifies the checksum."""
        with tempfile.TemporaryDirectory(prefix="trainops-") as folder:
            path = Path(folder, "object")
            if self._storage.download_file(file.location, path) != file.generation:
                raise changed(file)
            yield path


class _Blocks(io.RawIOBase):
    """The bytes of one version of an object, a block a request."""

    def __init__(self, storage: Storage, file: SourceFile) -> None:
        self._storage, self._file = storage, file
        self._at = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        """Read the next block, or less."""
        size = min(len(buffer), BLOCK, self._file.size - self._at)
        if size <= 0:
            return 0
        data = self._storage.read_range(self._file.location, self._at, size, generation=self._file.generation)
        if data is None:
            raise changed(self._file)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def _file(name: str, item: ObjectInfo) -> SourceFile:
    return SourceFile(name, item.uri, item.size, item.crc32c, item.generation)
