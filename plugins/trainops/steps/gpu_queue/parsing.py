"""Objects of the queue that may be of another version, or none of ours."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from trainops.errors import IntegrityError

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
