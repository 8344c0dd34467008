"""The operator's own arguments and a whole TrainingInput, merged into one; what both say differently is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Protocol

from trainops.errors import ConfigError
from trainops.jobspec.spelling import job_folded_in

FIELDS = {
    "region": "region",
    "package_uris": "packageUris",
    "training_python_module": "pythonModule",
    "training_args": "args",
    "scale_tier": "scaleTier",
    "master_type": "masterType",
    "master_config": "masterConfig",
    "worker_type": "workerType",
    "worker_count": "workerCount",
    "worker_config": "workerConfig",
    "runtime_version": "runtimeVersion",
    "python_version": "pythonVersion",
    "job_dir": "jobDir",
    "service_account": "serviceAccount",
    "hyperparameters": "hyperparameters",
}
"""Operator argument -> field of TrainingInput."""


class TrainingFields(Protocol):
    """Whatever carries the operator's arguments."""

    training_input: Any
    task_id: str


def merged_training_input(operator: TrainingFields, *, default_region: str) -> dict[str, Any]:
    """One TrainingInput out of `training_input`, in any spelling, and the operator's other arguments.

    :raises ConfigError: when it is no mapping, or an argument and the TrainingInput differ.
    """
    body = _whole(operator)
    given = {argument: getattr(operator, argument, None) for argument in FIELDS}
    for argument, value in given.items():
        name = FIELDS[argument]
        if value is None:
            continue
        if body.get(name, value) != value:
            raise ConfigError(
                f"{argument} and training_input.{name} differ ({body[name]!r})", source=operator.task_id,
                key=argument, value=value, next_step="give it in one of the two places",
            )  # fmt: skip
        body[name] = value
    body.setdefault("region", default_region)
    return body


def _whole(operator: TrainingFields) -> dict[str, Any]:
    """The TrainingInput as given, unwrapped, its merged fields in REST spelling."""
    given = operator.training_input
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ConfigError(
            "TrainingInput is a mapping", source=operator.task_id, key="training_input", value=given,
            next_step="pass the dict itself, or an XCom that holds it",
        )  # fmt: skip
    body = job_folded_in(given, f"{operator.task_id}: training_input")
    for name in FIELDS.values():
        snake = re.sub(r"([A-Z])", lambda found: f"_{found.group().lower()}", name)
        if snake != name and snake in body:
            body[name] = body.pop(snake)
    return body
