"""Parts: JSONL objects of documents, named by their bytes; and what was read from a group of files, kept beside them.

A part is written with generation 0, so two runs that stage the same never harm each other: who comes second finds the
same bytes under the name. What a group gave is written after its parts. A run that was killed leaves parts and groups
that the next one takes as they are.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Any

from trainops import naming
from trainops.config.dataset import Dataset
from trainops.errors import IntegrityError, TrainopsError, WriteConflict
from trainops.gcp.checksums import crc32c
from trainops.gcp.storage import ObjectInfo, Storage
from trainops.steps.staging.documents import Counts, Form, SourceDocument, read_documents
from trainops.steps.staging.groups import Group
from trainops.steps.staging.rows import Row, read_rows
from trainops.steps.staging.source import Source

PART_BYTES = 4 * 1024 * 1024
"""A part ends with the document before this size; one larger document is a part of its own."""
PARTS_ON_THEIR_WAY = 2
"""Parts of one group that are sent while it is read on: so many are in memory, and the one that is filled."""


@dataclass(frozen=True, slots=True)
class Part:
    """One object of documents: its name in the folder of parts, its bytes and CRC32C, and the ids of its documents."""

    name: str
    bytes: int
    crc32c: str
    ids: array[int]

    def value(self) -> dict[str, Any]:
        """Return it as JSON."""
        ids = base64.b64encode(self.ids.tobytes()).decode()
        return {"name": self.name, "bytes": self.bytes, "crc32c": self.crc32c, "ids": ids}

    @classmethod
    def of(cls, value: dict[str, Any]) -> Part:
        """Return the part that `value` made the JSON of."""
        return cls(value["name"], value["bytes"], value["crc32c"], array("Q", base64.b64decode(value["ids"])))


@dataclass(frozen=True, slots=True)
class GroupRead:
    """What reading a group gave: its parts, in order, and the counts; `duplicates` are those inside the group."""

    parts: tuple[Part, ...]
    counts: Counts
    duplicates: int

    def value(self) -> dict[str, Any]:
        """Return it as JSON."""
        parts = [part.value() for part in self.parts]
        return {"schema": 1, "parts": parts, "counts": self.counts.value(), "duplicates": self.duplicates}

    @classmethod
    def of(cls, value: dict[str, Any]) -> GroupRead:
        """Return what `value` made the JSON of."""
        return cls(tuple(map(Part.of, value["parts"])), Counts(**value["counts"]), value["duplicates"])


@dataclass
class Shelf:
    """The folder of parts, what lies in it, and where new ones go; safe to share between threads."""

    storage: Storage
    work: str
    dataset: str
    there: dict[str, ObjectInfo] = field(default_factory=dict)
    written: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def look(self) -> None:
        """List what lies in the folder."""
        folder = naming.dataset_parts(self.work, self.dataset)
        self.there = {item.uri.removeprefix(f"{folder}/"): item for item in self.storage.list(f"{folder}/")}

    def has(self, name: str, size: int, checksum: str) -> bool:
        """Return whether a part lies there.

        :raises IntegrityError: something else lies under its name.
        """
        item = self.there.get(name)
        if item is not None and (item.size, item.crc32c) != (size, checksum):
            raise IntegrityError(f"{item.uri} is not the part that its name says; it is left alone")
        return item is not None

    def put(self, data: bytes, ids: array[int]) -> Part:
        """Write a part unless it is there.

        :raises IntegrityError: something else lies under its name.
        """
        part = Part(f"{hashlib.sha256(data).hexdigest()[:32]}.jsonl", len(data), crc32c(data), ids)
        if not self.has(part.name, part.bytes, part.crc32c):
            uri = f"{naming.dataset_parts(self.work, self.dataset)}/{part.name}"
            try:
                self.storage.write_bytes(uri, data, generation=0, content_type="application/jsonl")
            except WriteConflict as error:
                raise IntegrityError(f"{uri} is not the part that its name says; it is left alone") from error
            with self._lock:
                self.written += 1
        return part


@dataclass(frozen=True)
class GroupReader:
    """Reads groups of files, each in one thread, and sends their parts in others."""

    dataset: Dataset
    form: Form
    source: Source
    shelf: Shelf
    senders: Executor
    stop: threading.Event

    def read(self, group: Group) -> GroupRead:
        """Stage a group, and keep what it gave.

        :raises ConfigError: a file cannot be read, or a row is broken and that stops the run.
        """
        counts, cutter = Counts(files=len(group.files)), _Cutter(drop=self.dataset.duplicates == "drop")
        parts = tuple(self._sent(cutter.parts(read_documents(self.dataset, self.form, self._rows(group), counts))))
        found = GroupRead(parts, counts, cutter.duplicates)
        uri = naming.dataset_group(self.shelf.work, self.dataset.name, group.key)
        try:
            self.shelf.storage.write_json(uri, found.value(), generation=0)
        except WriteConflict:
            # A run of another Python or another place may tell other places of broken rows; the parts are the same.
            stored = self.shelf.storage.read_json(uri)
            if stored is not None and GroupRead.of(stored.value).parts != parts:
                raise
        return found

    def _rows(self, group: Group) -> Iterator[Row]:
        for file in group.files:
            for row in read_rows(self.dataset, self.source, file):
                if self.stop.is_set():
                    raise TrainopsError("staging was stopped by an error in another file")
                yield row

    def _sent(self, parts: Iterable[tuple[bytes, array[int]]]) -> Iterator[Part]:
        pending: deque[Future[Part]] = deque()
        for data, ids in parts:
            pending.append(self.senders.submit(self.shelf.put, data, ids))
            if len(pending) > PARTS_ON_THEIR_WAY:
                yield pending.popleft().result()
        yield from (future.result() for future in pending)


class _Cutter:
    """Cuts documents into parts, and passes over texts that it has seen."""

    def __init__(self, *, drop: bool) -> None:
        self._drop = drop
        self._seen: set[int] = set()
        self.duplicates = 0

    def parts(self, documents: Iterable[SourceDocument]) -> Iterator[tuple[bytes, array[int]]]:
        held: list[bytes] = []
        ids, size = array("Q"), 0
        for document in documents:
            number = int(identity := document.id, 16)
            if self._drop and number in self._seen:
                self.duplicates += 1
                continue
            self._seen.add(number)
            value = {"id": identity, "source": document.source, "text": document.text}
            line = json.dumps(value, ensure_ascii=False).encode() + b"\n"
            if held and size + len(line) > PART_BYTES:
                yield b"".join(held), ids
                held, ids, size = [], array("Q"), 0
            held.append(line)
            ids.append(number)
            size += len(line)
        if held:
            yield b"".join(held), ids
