"""Source files in a local folder; links to folders are not followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from trainops.errors import ConfigError
from trainops.gcp.checksums import file_crc32c
from trainops.steps.staging.source import SourceFile, Verified, Wanted


class LocalFolder:
    """Files where the task runs."""

    def find(self, folder: str, wanted: Wanted, pruned: Wanted) -> list[SourceFile] | None:
        """See `Source.find`.

        :raises ConfigError: a file or folder cannot be read, or is no regular file.
        """
        root = Path(folder)
        if root.is_file():
            return [SourceFile(root.name, str(root), root.stat().st_size)]
        if not root.is_dir():
            return None
        found: list[SourceFile] = []
        for at, folders, names in os.walk(root, onerror=_unreadable):
            below = Path(at).relative_to(root).as_posix() + "/" if at != str(root) else ""
            # A virtual environment beside the data can hold a hundred times its files.
            folders[:] = [name for name in folders if not pruned(below + name)]
            found += [
                SourceFile(below + name, f"{at}/{name}", _size(Path(at, name)))
                for name in names
                if wanted(below + name)
            ]
        return found

    def folders(self, folder: str) -> list[str]:
        """See `Source.folders`; files count, too: a day may be a file."""
        path = Path(folder)
        return sorted(entry.name for entry in path.iterdir()) if path.is_dir() else []

    def fingerprinted(self, file: SourceFile) -> SourceFile:
        """See `Source.fingerprinted`; the file is read whole: a time of change can lie."""
        try:
            size, checksum = file_crc32c(Path(file.location))
        except OSError as error:
            _unreadable(error)
        return replace(file, size=size, crc32c=checksum)

    @contextmanager
    def open(self, file: SourceFile) -> Generator[Verified]:
        """See `Source.open`."""
        with Path(file.location).open("rb") as stream:
            yield Verified(stream, file)

    @contextmanager
    def on_disk(self, file: SourceFile) -> Generator[Path]:
        """See `Source.on_disk`."""
        yield Path(file.location)


def _size(path: Path) -> int:
    try:
        status = path.stat()
    except OSError as error:
        _unreadable(error)
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError("is no regular file", source=str(path), next_step="remove it, or exclude it")
    return status.st_size


def _unreadable(error: OSError) -> NoReturn:
    raise ConfigError(
        f"cannot be read: {error.strerror}", source=str(error.filename), next_step="correct it, or exclude it"
    ) from error
