"""Object storage as it is promised: strongly consistent, with generations. Replies may be lost, and callers may die."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from tests.unit.steps.lifecycle_model.actor import Actor, Crash, Fate

from trainops.errors import TransientError, WriteConflict
from trainops.gcp.storage import Blob, ObjectInfo, Storage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stored(Blob):
    """An object, and when it was written."""

    updated: datetime


@dataclass
class Objects:
    """What is stored.

    :param told: hears of every write: URI and the JSON value.
    """

    now: Callable[[], datetime]
    told: Callable[[str, Any], None] = lambda _uri, _value: None
    blobs: dict[str, Stored] = field(default_factory=dict)
    writes: int = 0

    def write(self, uri: str, data: bytes, generation: int | None) -> int:
        """Store a new generation if the present one is `generation`."""
        there = self.blobs[uri].generation if uri in self.blobs else 0
        if generation is not None and generation != there:
            raise WriteConflict(f"writing {uri}: generation {there}, not {generation}", status=412)
        self.writes += 1
        self.blobs[uri] = Stored(data, self.writes, self.now())
        self.told(uri, json.loads(data))
        return self.writes

    def value(self, uri: str) -> Any:
        """The JSON value stored there, None where there is none."""
        return json.loads(self.blobs[uri].data) if uri in self.blobs else None


def met(actor: Actor | None, call: str, effect: Callable[[], T]) -> T:
    """Let a call meet its fate: whether it takes effect, and whether the caller hears of it."""
    fate = Fate.DONE if actor is None else actor.at_call(call)
    if fate is Fate.CRASH_BEFORE:
        raise Crash(call)
    if fate not in {Fate.DONE, Fate.REPLY_LOST, Fate.CRASH_AFTER, Fate.SENT_AGAIN}:
        raise TransientError(f"{call}: 503", status=503)
    result = effect()
    if fate is Fate.CRASH_AFTER:
        raise Crash(call)
    if fate is Fate.REPLY_LOST:
        raise TransientError(f"{call}: no reply", status=503)
    if fate is Fate.SENT_AGAIN and actor is not None:
        actor.at_call(f"{call} again")
    return result


class ModelStorage(Storage):
    """The client of one actor; None is one whose calls always go well."""

    def __init__(self, objects: Objects, actor: Actor | None) -> None:
        self.objects = objects
        self.actor = actor

    def read_bytes(self, uri: str) -> Blob | None:
        return met(self.actor, f"read {uri}", lambda: self.objects.blobs.get(uri))

    def write_bytes(
        self, uri: str, data: bytes, *, generation: int | None, content_type: str = "application/octet-stream"
    ) -> int:
        written = met(self.actor, f"write {uri}", lambda: self.objects.write(uri, data, generation))
        stored = self.objects.blobs.get(uri)
        if (
            generation is not None
            and (stored is None or stored.generation != written)
            and not (stored and stored.data == data)
        ):
            raise WriteConflict(f"writing {uri}: sent again, and by then another write had followed", status=412)
        return written

    def info(self, uri: str) -> ObjectInfo | None:
        return met(self.actor, f"look at {uri}", lambda: self._info(uri))

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        names = met(self.actor, f"list {prefix}", lambda: sorted(self.objects.blobs))
        found = [self._info(uri) for uri in names if uri.startswith(prefix)]
        return iter([info for info in found if info is not None])

    def delete(self, uri: str, *, generation: int | None = None) -> bool:
        return met(self.actor, f"delete {uri}", lambda: self.objects.blobs.pop(uri, None) is not None)

    def _info(self, uri: str) -> ObjectInfo | None:
        blob = self.objects.blobs.get(uri)
        return None if blob is None else ObjectInfo(uri, len(blob.data), "", blob.generation, blob.updated)
