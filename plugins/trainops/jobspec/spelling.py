"""The forms in which people hold a training job: bare, under `trainingInput`, or as a whole body of projects.jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainops.errors import ConfigError

_WRAPPERS = ("trainingInput", "training_input")
_EXTRAS = "vertex"


def job_folded_in(data: Any, source: str) -> dict[str, Any]:
    """Return the TrainingInput inside `data`, with what stood around it under `job`.

    :raises ConfigError: no mapping, or two inputs in one.
    """
    fields = _mapping(data, source, "")
    wrappers = [name for name in _WRAPPERS if name in fields]
    if not wrappers:
        return fields
    if len(wrappers) > 1:
        problem = f"{' and '.join(wrappers)} are one field"
        raise ConfigError(problem, source=source, key=wrappers[1], next_step="keep one of them")
    inner = _mapping(fields.pop(wrappers[0]), source, wrappers[0])
    if _EXTRAS in fields:
        if _EXTRAS in inner:
            problem = "stands twice, beside the input and in it"
            raise ConfigError(problem, source=source, key=_EXTRAS, next_step="keep one of them")
        inner[_EXTRAS] = fields.pop(_EXTRAS)
    if fields and "job" in inner:
        step = "put it beside the input"
        raise ConfigError("stands in the input of a whole job", source=source, key="job", next_step=step)
    return {**inner, "job": fields} if fields else inner


def _mapping(data: Any, source: str, key: str) -> dict[str, Any]:
    if isinstance(data, Mapping):
        return dict(data)
    raise ConfigError(
        "a training job is a mapping of fields",
        source=source,
        key=key,
        value=type(data).__name__,
        next_step="begin with scaleTier, region, packageUris and pythonModule",
    )
