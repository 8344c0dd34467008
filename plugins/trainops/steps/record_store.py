"""Records in object storage: read, begun, changed with a generation match, listed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pydantic import ValidationError

from trainops.errors import IntegrityError, WriteConflict
from trainops.gcp.storage import Document, Storage
from trainops.policy.record import Record

ATTEMPTS_TO_WRITE = 20
"""Races of one record that are played again before giving up; each means that somebody else did write."""


class RecordStore:
    """The record of one job key."""

    def __init__(self, storage: Storage, uri: str) -> None:
        self.storage = storage
        self.uri = uri
        self.last: tuple[Record, int] | None = None
        """The record as it was last read or written here, with its storage generation."""

    def read(self) -> tuple[Record, int] | None:
        """The record and its storage generation; None when the job key has none yet.

        :raises IntegrityError: when the object is not one of ours.
        """
        document = self.storage.read_json(self.uri)
        self.last = None if document is None else (_parsed(self.uri, document), document.generation)
        return self.last

    def load(self) -> Record:
        """The record, which must exist.

        :raises IntegrityError: when it does not.
        """
        found = self.read()
        if found is None:
            raise IntegrityError(f"{self.uri}: there is no record; the task that submits has not run")
        return found[0]

    def known(self) -> Record:
        """The record as it was last read or written here; read where it was neither yet.

        :raises IntegrityError: when there is none.
        """
        return self.last[0] if self.last is not None else self.load()

    def change(self, changed: Callable[[Record | None], Record | None]) -> Record | None:
        """Write what `changed` makes of the record; played again when somebody else wrote in between.

        `changed` gets None when there is no record, and answers None to leave things as they are.

        :raises WriteConflict: after many lost races.
        """
        for _ in range(ATTEMPTS_TO_WRITE):
            found = self.read()
            before, generation = found if found is not None else (None, 0)
            after = changed(before)
            if after is None or after == before:
                return before
            if self._write(after, generation):
                return after
        raise WriteConflict(f"{self.uri}: lost {ATTEMPTS_TO_WRITE} races in a row", status=412)

    def swap(self, seen: Record, after: Record) -> Record | None:
        """Write what was decided for `seen`, if the record still is that; None when somebody else was first.

        Whoever gets None looks again: a decision must never be written onto a state that it was not made for. The
        record is not read again for it: the write is refused unless the object is still the one that `seen` was.
        """
        found = self.last if self.last is not None and self.last[0] == seen else self.read()
        if found is None or found[0] != seen:
            return None
        return after if self._write(after, found[1]) else None

    def _write(self, after: Record, generation: int) -> bool:
        """Write onto that generation; False when somebody else was first."""
        try:
            self.last = (after, self.storage.write_json(self.uri, after.to_json(), generation=generation))
        except WriteConflict:
            return False
        return True


def records_below(storage: Storage, folder: str) -> Iterator[RecordStore]:
    """The stores of all records directly below a run's folder."""
    for info in storage.list(folder + "/"):
        name = info.uri.removeprefix(folder + "/")
        if "/" in name or not name.endswith(".json"):
            continue
        document = storage.read_json(info.uri)
        if (
            document is not None
            and isinstance(document.value, dict)
            and document.value.get("kind") == "trainops.record"
        ):
            yield RecordStore(storage, info.uri)


def _parsed(uri: str, document: Document) -> Record:
    try:
        return Record.model_validate(document.value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise IntegrityError(
            f"{uri}: not a record of this version ({where}: {first['msg']}); it is left alone"
        ) from error
