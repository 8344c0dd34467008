"""One object that many change: read, changed and written again with a generation match, until nobody was faster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel

from trainops.errors import WriteConflict
from trainops.gcp.storage import Storage
from trainops.steps.gpu_queue.parsing import parse

RACES = 30
"""Writes that somebody else was faster with, before giving up."""

M = TypeVar("M", bound=BaseModel)


def read_model(storage: Storage, uri: str, empty: M) -> tuple[M, int]:
    """Return what is stored and its generation; `empty` and 0 where nothing is.

    :raises IntegrityError: what is stored is none of this version.
    """
    found = storage.read_json(uri)
    return (empty, 0) if found is None else (parse(type(empty), uri, found.value), found.generation)


def change_model(storage: Storage, uri: str, empty: M, change: Callable[[M], M]) -> M:
    """Write what `change` makes of what is stored, and return it.

    :raises IntegrityError: what is stored is none of this version; it is left alone.
    :raises WriteConflict: after many lost races.
    """
    for _ in range(RACES):
        before, generation = read_model(storage, uri, empty)
        after = change(before)
        try:
            storage.write_json(uri, after.model_dump(mode="json", by_alias=True), generation=generation)
        except WriteConflict:
            continue
        return after
    raise WriteConflict(f"{uri}: lost {RACES} races in a row", status=412)
