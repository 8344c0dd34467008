"""JSON objects that settle: writing the same value twice is one write, and a lost race is looked at, not believed."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from trainops.errors import IntegrityError, WriteConflict
from trainops.gcp.storage import Storage

M = TypeVar("M", bound=BaseModel)

RACES = 20
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
