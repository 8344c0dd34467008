"""The training job among Pulumi's resources: `pulumi preview --json`, `pulumi stack export`, or a program in YAML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainops.errors import ConfigError

_INPUTS = ("trainingInput", "training_input")
_UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"  # Pulumi's word for a value that only the deployment will know
_SIGNED = "4dabf18193072939515e22adb298388d"  # key of a mapping that is no plain value: a secret, an asset
_SECRET = "[secret]"


@dataclass(frozen=True)
class Resource:
    """One resource: its name or URN, its type, and its inputs."""

    name: str
    type: str
    fields: dict[str, Any]


def job_resource(data: Any, source: str) -> Resource | None:
    """Return the only resource with a TrainingInput; None when `data` is not from Pulumi.

    :raises ConfigError: no such resource, several, or an input that Pulumi did not tell.
    """
    if not _is_pulumi(data):
        return None
    resources = {found.name: found for found in _resources(data)}
    jobs = [found for found in resources.values() if any(name in found.fields for name in _INPUTS)]
    if len(jobs) == 1:
        return Resource(jobs[0].name, jobs[0].type, _plain(jobs[0].fields, source, ""))
    if jobs:
        problem, step = "several resources are training jobs", "give one of them in a file of its own"
    else:
        problem, step = "no resource has a trainingInput", "preview the program that declares the job"
    raise ConfigError(
        f"{problem}: {', '.join(f'{found.name} ({found.type})' for found in jobs or resources.values()) or 'none'}",
        source=source,
        next_step=step,
    )


def _is_pulumi(data: Any) -> bool:
    if not isinstance(data, Mapping) or any(name in data for name in _INPUTS):
        return False
    return (
        isinstance(data.get("steps"), list)
        or isinstance(data.get("deployment"), Mapping)
        or isinstance(data.get("resources"), Mapping)
    )


def _resources(data: Mapping[str, Any]) -> Iterator[Resource]:
    for step in _mappings(data.get("steps")):
        yield from _state(step.get("newState"), step.get("urn"))  # a deleted resource has no new state
    deployment = data.get("deployment")
    for state in _mappings(deployment.get("resources") if isinstance(deployment, Mapping) else None):
        yield from _state(state, None)
    program = data.get("resources")
    for name, declared in program.items() if isinstance(program, Mapping) else ():
        if isinstance(declared, Mapping):
            yield from _state({**declared, "inputs": declared.get("properties")}, name)


def _state(state: Any, name: Any) -> Iterator[Resource]:
    if isinstance(state, Mapping):
        inputs = state.get("inputs")
        fields = dict(inputs) if isinstance(inputs, Mapping) else {}
        yield Resource(str(name or state.get("urn")), str(state.get("type")), fields)


def _mappings(items: Any) -> list[Mapping[str, Any]]:
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []


def _plain(value: Any, source: str, key: str) -> Any:
    """Leave out Pulumi's own marks (`__defaults`); refuse what it hides or does not know yet."""
    if value == _UNKNOWN:
        problem, step = "only the deployment will know it", "write the value itself"
        raise ConfigError(problem, source=source, key=key, next_step=step)
    if value == _SECRET or (isinstance(value, Mapping) and _SIGNED in value):
        step = "preview with --show-secrets, or write the value itself"
        raise ConfigError("Pulumi hides it as a secret", source=source, key=key, next_step=step)
    if isinstance(value, Mapping):
        return {
            name: _plain(inner, source, f"{key}.{name}".lstrip("."))
            for name, inner in value.items()
            if not str(name).startswith("__")
        }
    if isinstance(value, list):
        return [_plain(inner, source, f"{key}.{index}") for index, inner in enumerate(value)]
    return value
