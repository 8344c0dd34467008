"""A job that its task cannot follow any more, while it runs: whether Airflow tries again, and what becomes of it.

The same for a task that waits on a worker and for one whose trigger gave up: a state that is unknown for too long
fails the try, and the next one goes on with the job. What no further try can mend ends the job: nobody would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from trainops.errors import CapacityError, TrainopsError, TransientError, WriteConflict

if TYPE_CHECKING:
    from airflow.sdk import Context

    from trainops.steps.watch import Watch

PASSES = (TransientError, CapacityError, WriteConflict)
"""What another try may get over, though this one waited for it as long as it was told to."""


def error_event(error: TrainopsError) -> dict[str, Any]:
    """What a trigger fires when it gives up."""
    return {"status": "error", "message": str(error), "may_pass": isinstance(error, PASSES)}


def error_of_event(event: dict[str, Any] | None) -> TrainopsError | None:
    """The error that a trigger fired; None when it did not give up."""
    if event is None or event.get("status") != "error":
        return None
    return TransientError(event["message"]) if event.get("may_pass") else TrainopsError(event["message"])


def unfollowed(watch: Watch, context: Context, error: TrainopsError, *, cancel: bool = True) -> Exception:
    """The exception to raise for an error that ended the wait; cancels the job when no try will go on with it.

    :param cancel: whether the task may end its job.
    """
    passes = isinstance(error, PASSES)
    if cancel and not (passes and is_followed_by_a_try(context)):
        watch.abandon(f"{context['ti'].task_id} cannot follow it any more: {error}")
    return error if passes else AirflowFailException(str(error))


def is_followed_by_a_try(context: Context) -> bool:
    """True when Airflow tries the task again after this try has failed."""
    instance: Any = context["ti"]
    return bool(instance.try_number <= instance.max_tries)
