"""Groups of files that are read and staged together, so that ten thousand small files do not make as many objects.

Where a group ends is told by the names and sizes of the files around, not by a count from the first: a file that is
added, changed or gone changes its own group, and at most the next ones up to the next name that ends one.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trainops import naming
from trainops.config.dataset import Dataset
from trainops.steps.staging.documents import Form
from trainops.steps.staging.source import SourceFile

VERSION = 1
"""Raised when the same files would be read to other rows: then nothing that was read before counts."""
LARGE_FILE = 1024 * 1024
"""A file of so many bytes is a group by itself."""
LARGE_GROUP = 4 * 1024 * 1024
"""Most bytes in a group of several files."""
ONE_NAME_IN = 32
"""One name in so many ends its group."""


@dataclass(frozen=True, slots=True)
class Group:
    """Files that are next to each other in the order of their paths."""

    files: tuple[SourceFile, ...]
    key: str
    """Names what reading them gives: by their paths, sizes and CRC32Cs, and by what the dataset says of reading."""

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(file.size for file in self.files)


def grouped(files: list[SourceFile], dataset: Dataset, form: Form) -> list[Group]:
    """Return the groups of files whose CRC32C is known, in order."""
    reading = _reading(dataset, form)
    return [
        Group(tuple(run), naming.fingerprint([reading, [[file.source, file.size, file.crc32c] for file in run]]))
        for run in _runs(files)
    ]


def key_of(groups: list[Group]) -> str:
    """Return the name of what reading all groups gives."""
    return naming.fingerprint([group.key for group in groups])


def _runs(files: list[SourceFile]) -> Iterator[list[SourceFile]]:
    run: list[SourceFile] = []
    for file in files:
        size = file.size + sum(other.size for other in run)
        if run and (file.size >= LARGE_FILE or size > LARGE_GROUP or file.partition != run[-1].partition):
            yield run
            run = []
        run.append(file)
        if file.size >= LARGE_FILE or _ends(file.source):
            yield run
            run = []
    if run:
        yield run


def _ends(source: str) -> bool:
    return int.from_bytes(hashlib.sha256(source.encode()).digest()[:4], "big") % ONE_NAME_IN == 0


def _reading(dataset: Dataset, form: Form) -> dict[str, Any]:
    keys = {"format", "text_column", "prompt_column", "response_column", "columns", "max_row_bytes", "duplicates"}
    value = {"version": VERSION, "form": form, **dataset.model_dump(include=keys)}
    # Another Python reads other syntax.
    return value | ({"python": platform.python_version_tuple()[:2]} if form == "docstrings" else {})
