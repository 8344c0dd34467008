"""The operator's own arguments and a whole TrainingInput, merged into one; what both say differently is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Protocol

from airflow.sdk import BaseOperator

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
    "parameter_server_type": "parameterServerType",
    "parameter_server_count": "parameterServerCount",
    "parameter_server_config": "parameterServerConfig",
    "evaluator_type": "evaluatorType",
    "evaluator_count": "evaluatorCount",
    "evaluator_config": "evaluatorConfig",
    "runtime_version": "runtimeVersion",
    "python_version": "pythonVersion",
    "job_dir": "jobDir",
    "service_account": "serviceAccount",
    "scheduling": "scheduling",
    "hyperparameters": "hyperparameters",
}
"""Operator argument -> field of TrainingInput."""

_LISTS = ("package_uris", "training_args")
_EMPTY: tuple[Any, ...] = (None, "", [], {}, ())


class TrainingArguments(BaseOperator):
    """Holds the arguments that are fields of a TrainingInput; the operator that submits adds its own.

    They are spelt out, since Airflow gives `default_args` only to arguments that a signature names. An empty text, list
    or dict counts as not given, as in the Google provider's operator.

    :param package_uris: gs:// URIs of the packages; a single text is one package.
    :param training_args: arguments of the program; a single text is one argument.
    :param training_input: TrainingInput in any spelling, bare or within a whole job.
    :param training_input_uri: gs:// URI of a TrainingInput in JSON or YAML, instead of `training_input`.
    """

    def __init__(
        self,
        *,
        region: str | None = None,
        package_uris: list[str] | str | None = None,
        training_python_module: str | None = None,
        training_args: list[str] | str | None = None,
        scale_tier: str | None = None,
        master_type: str | None = None,
        master_config: dict[str, Any] | None = None,
        worker_type: str | None = None,
        worker_count: int | str | None = None,
        worker_config: dict[str, Any] | None = None,
        parameter_server_type: str | None = None,
        parameter_server_count: int | str | None = None,
        parameter_server_config: dict[str, Any] | None = None,
        evaluator_type: str | None = None,
        evaluator_count: int | str | None = None,
        evaluator_config: dict[str, Any] | None = None,
        runtime_version: str | float | None = None,
        python_version: str | float | None = None,
        job_dir: str | None = None,
        service_account: str | None = None,
        scheduling: dict[str, Any] | None = None,
        hyperparameters: dict[str, Any] | None = None,
        training_input: Any = None,
        training_input_uri: str | None = None,
        **kwargs: Any,
    ) -> None:
        given = dict(locals())
        super().__init__(**kwargs)
        for argument in FIELDS:
            setattr(self, argument, given[argument])
        self.training_input = training_input
        self.training_input_uri = training_input_uri


class TrainingFields(Protocol):
    """Whatever carries the operator's arguments."""

    training_input: Any
    task_id: str


def merged_training_input(
    operator: TrainingFields, *, default_region: str, stored: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """One TrainingInput out of a whole one, in any spelling, and the operator's other arguments.

    :param stored: what the operator's `training_input_uri` holds.
    :raises ConfigError: when it is no mapping, or an argument and the TrainingInput differ.
    """
    body = whole_training_input(operator, operator.training_input if stored is None else stored)
    for argument, name in FIELDS.items():
        value = _listed(argument, getattr(operator, argument, None))
        if value in _EMPTY:
            continue
        if not _same(body.get(name, value), value):
            raise ConfigError(
                f"{argument} and training_input.{name} differ ({body[name]!r})", source=operator.task_id,
                key=argument, value=value, next_step="give it in one of the two places",
            )  # fmt: skip
        body[name] = value
    body.setdefault("region", default_region)
    return body


def _listed(argument: str, value: Any) -> Any:
    """A single text where a list belongs stands in many old DAG files."""
    return [value] if argument in _LISTS and isinstance(value, str) and value else value


def _same(one: Any, other: Any) -> bool:
    """Equal, also when a template or YAML made a text of one of the two numbers."""
    return bool(one == other) or (not isinstance(one, (list, Mapping)) and str(one) == str(other))


def whole_training_input(operator: TrainingFields, given: Any) -> dict[str, Any]:
    """The TrainingInput as given, unwrapped, the fields that are arguments as well in REST spelling.

    :raises ConfigError: it is no mapping.
    """
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
