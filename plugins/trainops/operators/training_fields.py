"""The operator's own arguments and a whole TrainingInput, merged into one; what both say differently is refused."""

from __future__ import annotations

from typing import Any, Protocol

from trainops.errors import ConfigError

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
    """One TrainingInput out of `training_input` and the operator's other arguments.

    :raises ConfigError: when it is no mapping, or an argument and the TrainingInput differ.
    """
    whole = operator.training_input if operator.training_input is not None else {}
    if not isinstance(whole, dict):
        raise ConfigError(
            "TrainingInput is a mapping", source=operator.task_id, key="training_input", value=whole,
            next_step="pass the dict itself, or an XCom that holds it",
        )  # fmt: skip
    body = dict(whole)
    for argument, name in FIELDS.items():
        value = getattr(operator, argument, None)
        if value is None:
            continue
        if name in body and body[name] != value:
            raise ConfigError(
                f"{argument} and training_input.{name} differ ({body[name]!r})", source=operator.task_id,
                key=argument, value=value, next_step="give it in one of the two places",
            )  # fmt: skip
        body[name] = value
    body.setdefault("region", default_region)
    return body
