"""Objects of the queue that may be of another version, or none of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from trainops.errors import IntegrityError
from trainops.gcp.storage import ObjectInfo, Storage

M = TypeVar("M", bound=BaseModel)


def parse(model: type[M], uri: str, value: Any) -> M:
    """Parse an object.

    :raises IntegrityError: when it is none of this version.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        raise IntegrityError(f"{uri}: not an object of this version; it is left alone ({first['msg']})") from error


class KnownObjects(Generic[M]):
    """The objects below a prefix; what has not changed since the last look is not read again.

    :param kind_of: what an object is, by its URI.
    """

    def __init__(self, storage: Storage, prefix: str, kind_of: Callable[[str], type[M]]) -> None:
        self._storage = storage
        self._prefix = prefix
        self._kind_of = kind_of
        self._known: dict[str, tuple[int, M]] = {}
        self.unread: list[str] = []
        """What stood there at the last look and is none of ours, one sentence each; it is left alone."""

    def look(self) -> list[tuple[ObjectInfo, M]]:
        """Return every object that can be read; one that cannot hides nothing else."""
        found: list[tuple[ObjectInfo, M]] = []
        known: dict[str, tuple[int, M]] = {}
        unread: list[str] = []
        for info in self._storage.list(self._prefix):
            try:
                read = self._read(info)
            except IntegrityError as error:
                unread.append(str(error))
                continue
            if read is not None:
                known[info.uri] = read
                found.append((info, read[1]))
        self._known, self.unread = known, unread
        return found

    def _read(self, info: ObjectInfo) -> tuple[int, M] | None:
        known = self._known.get(info.uri)
        if known is not None and known[0] == info.generation:
            return known
        document = self._storage.read_json(info.uri)
        if document is None:
            return None  # deleted since the list
        return document.generation, parse(self._kind_of(info.uri), info.uri, document.value)
