"""What stands for a refused or missing field of a job, so that the rest is looked at and nothing is refused falsely."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from trainops.jobspec.pools import ROLES
from trainops.jobspec.tables.runtimes import image_uri
from trainops.jobspec.translate import Images

HOLES: dict[str, Any] = {
    "region": "us-central1",
    "pythonModule": "trainer.task",
    "packageUris": ["gs://bucket/package.tar.gz"],
    "runtimeVersion": None,
}
"""Fields that a partial job may lack, and what stands for them; images stand for the runtime version."""

IMAGES = Images(image_uri("tf-cpu.2-11"), image_uri("tf-gpu.2-11"), image_uri("tf-tpu.2-12"))
"""Images of a runtime version that is refused or missing."""

MACHINE = "n1-standard-4"
"""A machine that is never refused."""

_PARAMS = "hyperparameters.params"
_PARAM = re.compile(r"hyperparameters\.params\.\d+")
_ACCELERATOR = re.compile(r"\w+Config\.acceleratorConfig")
_IMAGE = "image"
_MACHINE_TYPES = tuple(f"{role}Type" for role in ROLES)
_IMAGE_URIS = tuple(f"{role}Config.imageUri" for role in ROLES)
_OF_ACCELERATORS = ("vertex.tpuTopology", "vertex.strategy", "vertex.maxWaitDuration", "vertex.reservationAffinity")
_OF_MACHINE = ("acceleratorConfig", "diskConfig.bootDiskType", "tpuTfVersion", "imageUri")


def _needs() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {
        "vertex.strategy": ("vertex.maxWaitDuration",),
        "network": ("vertex.reservedIpRanges",),
        "vertex.network": ("vertex.reservedIpRanges",),
    }
    for role in ROLES:
        config = f"{role}Config"
        found[f"{role}Type"] = (*(f"{config}.{part}" for part in _OF_MACHINE), *_OF_ACCELERATORS)
        found[f"{config}.acceleratorConfig"] = _OF_ACCELERATORS
        found[f"{role}Count"] = (f"{role}Type", config)
    return found


_NEEDS = _needs()
"""Refused field -> fields that cannot be looked at without it."""


def set_aside(fields: dict[str, Any], key: str) -> dict[str, Any] | None:
    """Take a refused field out of the job, or put in what stands for it.

    :param fields: the TrainingInput, in either spelling; it is changed, what it holds is not.
    :param key: dotted path of the field.
    :returns: the fields that are not looked at therefore; None when nothing could be taken out.
    """
    key = _whole(key)
    if not (_replaced(fields, key) or taken_out(fields, key)):
        return None
    values = {name: _unread(fields, name) for name in _NEEDS.get(key, ())}
    return {name: value for name, value in values.items() if value is not None}


def taken_out(fields: dict[str, Any], key: str) -> bool:
    """Take out the field at `key`, else the nearest field that it would be in; False when there is none."""
    parts = key.split(".")
    for length in range(len(parts), 0, -1):
        place = _place(fields, parts[:length])
        if place is not None:
            inner, name = place
            del inner[name]
            return True
    return False


def value_at(fields: Mapping[str, Any], key: str) -> Any:
    """Return what stands at a dotted path, in either spelling; None where nothing does."""
    found: Any = fields
    for part in key.split("."):
        name = _name(found, part)
        if name is None:
            return None
        found = found[name]
    return found


def snake(name: str) -> str:
    """Return a field's name, or a dotted path, in snake_case."""
    return re.sub(r"([A-Z])", lambda found: f"_{found.group().lower()}", name)


def camel(name: str) -> str:
    """Return a field's name, or a dotted path, in REST spelling."""
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def _whole(key: str) -> str:
    """Return the key of the smallest part of a job that can stand alone."""
    spelt = camel(key)
    for pattern in (_PARAM, _ACCELERATOR):
        found = pattern.match(spelt)
        if found is not None:
            return found.group()
    return spelt if spelt.partition(".")[0] != "job" else key


def _replaced(fields: dict[str, Any], key: str) -> bool:
    """Put a value in place that is never refused; False for a field that the job can do without."""
    if _PARAM.fullmatch(key):
        return _put(fields, key, _param(key.rpartition(".")[2]))
    if key == _PARAMS:
        fields["hyperparameters"] = {**(value_at(fields, "hyperparameters") or {}), "params": [_param("0")]}
        return True
    if key in _MACHINE_TYPES:
        fields.pop(snake(key), None)
        fields[key] = MACHINE
        return True
    if key in _IMAGE_URIS:
        return _put(fields, key, _IMAGE)
    if key == "scaleTier":
        return _put(fields, key, "CUSTOM")
    head, _, rest = key.partition(".")
    if HOLES.get(head) is not None:
        stand_in = HOLES[head]
        return _put(fields, key, stand_in[0] if rest else stand_in)
    inner = value_at(fields, key.rpartition(".")[0]) if "." in key else None
    is_text = isinstance(inner, Sequence) and not isinstance(value_at(fields, key), (Mapping, list))
    return is_text and _put(fields, key, "x")


def _unread(fields: dict[str, Any], key: str) -> Any:
    """Take out a field that cannot be looked at, and return it; None when it was not given."""
    value = value_at(fields, key)
    if value is None:
        return None
    if key.endswith(".imageUri"):
        _put(fields, key, _IMAGE)
        return value
    taken_out(fields, key)
    outer = key.rpartition(".")[0]
    if outer and value_at(fields, outer) == {}:
        taken_out(fields, outer)
    return value


def _param(name: str) -> dict[str, Any]:
    return {"parameterName": f"stand-in-{name}", "type": "CATEGORICAL", "categoricalValues": ["x"]}


def _put(fields: dict[str, Any], key: str, value: Any) -> bool:
    """Put a value in place of one that is given; False when none is."""
    place = _place(fields, key.split("."))
    if place is None:
        return False
    inner, name = place
    inner[name] = value
    return True


def _place(fields: dict[str, Any], parts: Sequence[str]) -> tuple[Any, Any] | None:
    """Return what holds the field, and its name there; all on the way to it is copied first."""
    here: Any = fields
    for part in parts[:-1]:
        name = _name(here, part)
        if name is None or not isinstance(here[name], (Mapping, list)):
            return None
        here[name] = dict(here[name]) if isinstance(here[name], Mapping) else list(here[name])
        here = here[name]
    name = _name(here, parts[-1])
    return None if name is None else (here, name)


def _name(holder: Any, part: str) -> Any:
    if isinstance(holder, Mapping):
        return next((name for name in (part, snake(part), camel(part)) if name in holder), None)
    if isinstance(holder, list) and part.isdecimal() and int(part) < len(holder):
        return int(part)
    return None
