"""A task of an Airflow DAG that starts a training job: the operator of the Google provider, with its arguments."""

from __future__ import annotations

import ast
from typing import Any

from trainops.errors import ConfigError
from trainops.jobspec.notes import Note
from trainops.jobspec.reading.held_job import HeldJob
from trainops.jobspec.reading.program import Program
from trainops.jobspec.reading.untold import COMPUTED, settled, written

OPERATORS = {"MLEngineTrainingOperator", "MLEngineStartTrainingJobOperator"}
"""Names of the operator; the first one until 2020."""

_FIELDS = {
    "training_python_module": "pythonModule",
    "training_args": "args",
    "package_uris": "packageUris",
    "region": "region",
    "scale_tier": "scaleTier",
    "master_type": "masterType",
    "master_config": "masterConfig",
    "runtime_version": "runtimeVersion",
    "python_version": "pythonVersion",
    "job_dir": "jobDir",
    "service_account": "serviceAccount",
    "hyperparameters": "hyperparameters",
}
"""Argument -> field of TrainingInput (provider google 10.26.0, `operators/mlengine.py`)."""

_JOB = {"job_id": "jobId", "labels": "labels", "project_id": "project"}
_LISTS = ("training_args", "package_uris")
_OF_AIRFLOW = (
    "task_id", "dag", "gcp_conn_id", "google_cloud_conn_id", "delegate_to", "mode", "impersonation_chain", "deferrable",
    "cancel_on_kill", "owner", "email", "email_on_failure", "email_on_retry", "retries", "retry_delay",
    "retry_exponential_backoff", "max_retry_delay", "start_date", "end_date", "depends_on_past", "wait_for_downstream",
    "default_args", "priority_weight", "weight_rule", "queue", "pool", "pool_slots", "sla", "execution_timeout",
    "on_failure_callback", "on_success_callback", "on_retry_callback", "trigger_rule", "resources", "task_group",
    "provide_context", "do_xcom_push", "doc_md", "executor_config", "max_active_tis_per_dag", "params",
)  # fmt: skip
"""Arguments that say nothing about the job."""


def read_task(program: Program, call: ast.expr, source: str) -> HeldJob:
    """Return the job that the operator starts.

    :raises ConfigError: an unknown argument, or a value that the program does not tell.
    """
    given = _arguments(program, call, source)
    body: dict[str, Any] = {"trainingInput": {}}
    notes: list[Note] = []
    for name, value in ((name, _templated(value)) for name, value in given.items()):
        if name in _OF_AIRFLOW:
            notes.append(Note(name, _shown(value), "changed", "", "not sent: it is for Airflow"))
        elif value in (None, "", [], {}):
            notes.append(Note(name, value, "changed", "", "empty: it counts as not given"))
        elif name in _FIELDS:
            body["trainingInput"][_FIELDS[name]] = [value] if name in _LISTS and isinstance(value, str) else value
        else:
            body[_JOB[name]] = value
    settled_body, untold = settled(body, source)
    task = written(str(given.get("task_id", "")))
    return HeldJob(settled_body, f"the Airflow task {task} of line {call.lineno}", notes + untold, name=task)


def _arguments(program: Program, call: ast.expr, source: str) -> dict[str, Any]:
    found = _defaults(program)
    for one in call.keywords if isinstance(call, ast.Call) else ():
        value = program.value(one.value)
        if one.arg is not None:
            found[one.arg] = value
        elif isinstance(value, dict):
            found |= value
        else:
            step = "write the arguments out"
            raise ConfigError("arguments are not told", source=source, value=written(str(value)), next_step=step)
    known = [*_FIELDS, *_JOB, *_OF_AIRFLOW]
    for name in found:
        if name not in known:
            place = f"line {call.lineno}"
            raise ConfigError("unknown argument", source=source, key=place, value=name, allowed=known)
    return found


def _defaults(program: Program) -> dict[str, Any]:
    """Return what the DAG's default_args say about the job."""
    for node in program.nodes():
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "DAG":
            given = next((program.value(one.value) for one in node.keywords if one.arg == "default_args"), None)
            if isinstance(given, dict):
                return {str(name): value for name, value in given.items() if name in _FIELDS or name in _JOB}
    return {}


def _templated(value: Any) -> Any:
    """Mark texts that Airflow fills in at each run."""
    if isinstance(value, list):
        return [_templated(inner) for inner in value]
    return f"{COMPUTED}{value}" if isinstance(value, str) and "{{" in value else value


def _shown(value: Any) -> Any:
    return written(value) if isinstance(value, str) else str(value) if isinstance(value, (dict, list)) else value
