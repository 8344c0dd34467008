"""JSON objects that several write: the same value twice is one write, and a lost race is looked at, not believed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from trainops.errors import IntegrityError, WriteConflict
from trainops.gcp.storage import Storage

M = TypeVar("M", bound=BaseModel)

RACES = 30
"""Races of one object that are played again before giving up; each means that somebody else did write."""


def settle(storage: Storage, uri: str, value: dict[str, Any]) -> int:
    """Make the object hold `value` and return its generation; one that does already is not written again.

    :raises WriteConflict: after many lost races.
    """
    for _ in range(RACES):
        stored = storage.read_json(uri)
        if stored is not None and stored.value == value:
            return stored.generation
        try:
            return storage.write_json(uri, value, generation=stored.generation if stored else 0)
        except WriteConflict:
            continue
    raise WriteConflict(f"{uri}: lost {RACES} races in a row", status=412)


def read_model(storage: Storage, uri: str, model: type[M]) -> tuple[M, int] | None:
    """Return the object as `model` with its generation, None where there is none.

    :raises IntegrityError: the object is not one of ours, or of another version of the layout.
    """
    stored = storage.read_json(uri)
    if stored is None:
        return None
    try:
        return model.model_validate(stored.value), stored.generation
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise IntegrityError(f"{uri}: {where}: {first['msg']}; it is left alone") from error


def change_model(storage: Storage, uri: str, empty: M, change: Callable[[M], M]) -> M:
    """Write what `change` makes of the object, played again when somebody was faster, and return it.

    :param empty: what is changed where there is no object.
    :raises IntegrityError: the object is not one of ours; it is left alone.
    :raises WriteConflict: after many lost races.
    """
    for _ in range(RACES):
        before, generation = read_model(storage, uri, type(empty)) or (empty, 0)
        after = change(before)
        try:
            storage.write_json(uri, after.model_dump(mode="json", by_alias=True), generation=generation)
        except WriteConflict:
            continue
        return after
    raise WriteConflict(f"{uri}: lost {RACES} races in a row", status=412)
