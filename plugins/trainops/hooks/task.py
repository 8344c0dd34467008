"""An Airflow task as the run lifecycle sees it: who it is, which try it is, and how its failure is told.

Imports of `steps` stand inside the functions, so that a DAG file parses in a fraction of a second.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from trainops.errors import ConfigError, RunError, TrainopsError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from trainops.policy.record import Record, TaskTry
    from trainops.steps.watch import Watch


FIRST_START = "first_start"
"""Begins the key under which a task keeps when its first try began."""


def try_of(context: Context) -> TaskTry:
    """The try that runs now."""
    from trainops.policy.record import TaskTry

    instance: Any = context["ti"]
    dag_run: Any = context["dag_run"]
    return TaskTry(
        **task_key(context),
        ti_id=str(instance.id),
        try_number=instance.try_number,
        max_tries=instance.max_tries,
        clear_number=getattr(dag_run, "clear_number", 0) or 0,
    )


def task_key(context: Context) -> dict[str, Any]:
    """dag_id, run_id, task_id and map_index of the task."""
    instance: Any = context["ti"]
    index = instance.map_index if instance.map_index is not None else -1
    return {
        "dag_id": instance.dag_id,
        "run_id": instance.run_id,
        "task_id": instance.task_id,
        "map_index": index,
    }


def state_of(key: dict[str, Any]) -> str | None:
    """What Airflow says of the task's state now; None of a task that is to run again.

    :param key: as `task_key` gives it.
    """
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    states = RuntimeTaskInstance.get_task_states(
        dag_id=key["dag_id"], task_ids=[key["task_id"]], run_ids=[key["run_id"]], map_index=key["map_index"]
    )
    name = key["task_id"] if key["map_index"] < 0 else f"{key['task_id']}_{key['map_index']}"
    state = states.get(key["run_id"], {}).get(name)
    return None if state is None else str(getattr(state, "value", state))


def failure(record: Record, error: RunError) -> Exception:
    """The exception to raise: one that Airflow does not retry when a retry cannot help."""
    from trainops.steps.run_verdict import retry_helps

    return error if retry_helps(record) else AirflowFailException(f"{type(error).__name__}: {error}")


def refused(error: TrainopsError) -> Exception:
    """A user's mistake fails the task at once, without retries and without a traceback to read."""
    return AirflowFailException(str(error)) if isinstance(error, ConfigError) else error


def is_retry(context: Context) -> bool:
    """True when Airflow retries the task, False on its first try and on the first try after a clear.

    A clear raises `max_tries` by the tries that were used, so the first try after it is `max_tries - retries + 1`.
    """
    instance: Any = context["ti"]
    return bool(instance.try_number > instance.max_tries - (instance.task.retries or 0) + 1)


def first_start(context: Context) -> datetime:
    """When the first try since the last clear began: from then on Airflow counts a sensor's `timeout`."""
    instance: Any = context["ti"]
    kept: Any = context["task_state_store"]
    key = f"{FIRST_START}_{instance.max_tries - (instance.task.retries or 0) + 1}"
    found = kept.get(key)
    if isinstance(found, str):
        return datetime.fromisoformat(found)
    began: datetime = instance.start_date
    kept.set(key, began.isoformat())
    return began


def resume_failed(watch: Watch, context: Context) -> None:
    """On a retry of the waiting task, open a generation that failed again, so that the next attempt is submitted."""
    from trainops.steps.start import reopen

    if not is_retry(context):
        return
    current = try_of(context)
    if reopen(watch.run.store, current, watch.services.now()):
        watch.say(f"try {current.try_number}: a failed job is submitted again, from its last checkpoint")


def take_over(watch: Watch) -> Record:
    """Forget an earlier trigger's hand-over before a task defers: until the new one fires, a kill means an end."""
    watch.run.store.change(lambda record: record and record.model_copy(update={"hand_over": None}))
    return watch.run.store.load()
