"""CRC32C as Google writes it: base64 of four big-endian bytes."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

_BLOCK = 1 << 20


class Crc32c:
    """The checksum of bytes that come one piece after the other."""

    def __init__(self) -> None:
        import google_crc32c

        self._checksum: Any = google_crc32c.Checksum()  # type: ignore[no-untyped-call]

    def update(self, data: bytes) -> None:
        """Add a piece."""
        self._checksum.update(data)

    def base64(self) -> str:
        """Return the checksum of all pieces so far."""
        return base64.b64encode(self._checksum.digest()).decode()


def crc32c(data: bytes) -> str:
    """Return the checksum of `data`."""
    checksum = Crc32c()
    checksum.update(data)
    return checksum.base64()


def file_crc32c(path: Path) -> tuple[int, str]:
    """Return the size of a file in bytes, and its checksum, of the same reading."""
    checksum, size = Crc32c(), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            checksum.update(block)
            size += len(block)
    return size, checksum.base64()
