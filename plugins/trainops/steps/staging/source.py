"""What a place of source files can do, and what is known of a file in it.

A new kind of place is a class like those in `local_folder.py` and `bucket.py`, and a line in `find.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from trainops.errors import IntegrityError, TrainopsError
from trainops.gcp.checksums import Crc32c

Wanted = Callable[[str], bool]
"""Whether a relative path counts."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a dataset, as it was when it was found.

    :param source: path relative to the dataset's.
    :param location: where it is: a local path or a gs:// URI.
    :param size: in bytes.
    :param crc32c: of its bytes, in base64; empty until it is known.
    :param generation: which version of an object; None for a local file.
    :param partition: folder of the day that it belongs to, where the dataset has several.
    """

    source: str
    location: str
    size: int = 0
    crc32c: str = ""
    generation: int | None = None
    partition: str = ""


class Source(Protocol):
    """A place of files. Its methods raise ConfigError for what a user can correct, and the ServiceError family."""

    def find(self, folder: str, wanted: Wanted, pruned: Wanted) -> list[SourceFile] | None:
        """Return the files below `folder`, or the one that it names; None where there is neither.

        :param wanted: whether a file counts. `pruned` says of a folder that nothing below it does.
        """
        ...

    def folders(self, folder: str) -> list[str]:
        """Return the names directly in a folder, sorted; none where there is no such folder."""
        ...

    def fingerprinted(self, file: SourceFile) -> SourceFile:
        """Return the file with its size and CRC32C, read from it where they are not known."""
        ...

    def open(self, file: SourceFile) -> AbstractContextManager[Verified]:
        """Open the bytes of the version that was found; who has read them calls `verify`."""
        ...

    def on_disk(self, file: SourceFile) -> AbstractContextManager[Path]:
        """Give a local file with the bytes, for formats that are read out of order.

        Who has read them looks whether `fingerprinted` still gives the same.
        """
        ...


class Verified:
    """Bytes on their way from a source; at their end they must have been those that were found."""

    def __init__(self, stream: BinaryIO, file: SourceFile) -> None:
        self._stream, self._file = stream, file
        self._checksum = Crc32c()
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        """Read on."""
        data = self._stream.read(size)
        self._checksum.update(data)
        return data

    def readline(self, size: int = -1) -> bytes:
        """Read up to the end of the line."""
        data = self._stream.readline(size)
        self._checksum.update(data)
        return data

    def readable(self) -> bool:
        """Return True, for wrappers."""
        return True

    def seekable(self) -> bool:
        """Return False: only what is read in order can be verified."""
        return False

    def writable(self) -> bool:
        """Return False."""
        return False

    def flush(self) -> None:
        """Do nothing, for wrappers."""

    def close(self) -> None:
        """Do nothing: who opened the stream closes it."""

    def verify(self) -> None:
        """Read to the end, and compare.

        :raises TrainopsError: the file changed; :raises IntegrityError: an immutable version came with other bytes.
        """
        while self.read(1 << 20):
            pass
        if self._checksum.base64() == self._file.crc32c:
            return
        if self._file.generation is not None:
            raise IntegrityError(f"{self._file.location}: the checksum of what arrived is wrong; run the task again")
        raise changed(self._file)


def changed(file: SourceFile) -> TrainopsError:
    """Return the error that a file is not the one that was found."""
    return TrainopsError(f"{file.location} changed while it was staged; run the task again")
