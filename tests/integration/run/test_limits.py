"""How long a sensor waits, by whichever way: Airflow's limits, and a state that stays unknown."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from airflow.sdk.exceptions import (
    AirflowRescheduleException,
    AirflowSensorTimeout,
    AirflowSkipException,
    AirflowTaskTimeout,
    TaskDeferred,
)
from airflow.sdk.execution_time.timeout import timeout
from tests.integration.run.old_task import Json, Seen, Try, arguments, deferred, event_of, stored
from tests.integration.run.test_case_waiting import ended, sensing

from trainops.errors import TransientError
from trainops.hooks.task import is_retry
from trainops.providers.google.cloud.operators.mlengine import MLEngineStartTrainingJobOperator as Operator
from trainops.sensors.training_job import TrainingJobSensor
from trainops.steps.record_store import RecordStore
from trainops.steps.services import Services

SLOW = "import time; time.sleep(60)"


@pytest.fixture
def run(seen: Seen) -> str:
    """The record of a job that runs for long."""
    return stored(deferred(Operator(**arguments(SLOW, deferrable=True)), Try(1))).record_uri


def sensor(run: str, **changes: Any) -> TrainingJobSensor:
    given: Json = {"task_id": "wait", "run": run, "poll_interval": 0.5, "poke_interval": 0.3}
    return TrainingJobSensor(**given | changes)


def sensed(waiting: TrainingJobSensor, context: Any) -> Any:
    """One try of a deferrable sensor, as Airflow takes it through a triggerer."""
    try:
        return waiting.execute(context)
    except TaskDeferred as deferral:
        event = event_of(stored(deferral))
        return waiting.resume_execution(str(deferral.method_name), {**(deferral.kwargs or {}), "event": event}, context)


def poked(waiting: TrainingJobSensor, context: Any) -> Any:
    """One try of a sensor that pokes, with what Airflow's task runner puts around it."""
    airflows: Any = timeout
    with airflows(waiting.execution_timeout.total_seconds() if waiting.execution_timeout else 600):
        return waiting.execute(context)


WAYS = pytest.mark.parametrize(
    ("deferrable", "wait"), [(True, sensed), (False, poked)], ids=["deferred", "on a worker"]
)  # fmt: skip
LIMITS: list[tuple[Json, type[BaseException]]] = [
    ({"timeout": 2}, AirflowSensorTimeout),
    ({"timeout": 2, "soft_fail": True}, AirflowSkipException),
    ({"timeout": 60, "execution_timeout": timedelta(seconds=2)}, AirflowTaskTimeout),
]


@pytest.mark.parametrize(("limits", "error"), LIMITS)
@WAYS
def test_a_limit_of_the_task_ends_the_wait_by_every_way_alike_and_leaves_the_job(
    seen: Seen, run: str, deferrable: bool, wait: Callable[..., Any], limits: Json, error: type[BaseException]
) -> None:
    with pytest.raises(error):
        wait(sensor(run, deferrable=deferrable, **limits), sensing(Try(1)))
    assert seen.states() in (["PENDING"], ["RUNNING"])


def test_the_deadline_is_the_same_for_a_triggerer_that_was_started_again(run: str) -> None:
    current = Try(1)
    with pytest.raises(TaskDeferred) as deferral:
        sensor(run, timeout=3600, execution_timeout=timedelta(minutes=5)).execute(sensing(current))
    trigger = stored(deferral.value)
    assert trigger.deadline == (current.start_date + timedelta(minutes=5)).isoformat()
    assert trigger.serialize()[1]["deadline"] == trigger.deadline


def test_the_timeout_counts_from_the_first_try_and_the_execution_timeout_from_each(run: str) -> None:
    first, second = Try(1), Try(2)
    first.start_date = datetime.now(UTC) - timedelta(hours=2)
    context = sensing(first)
    waiting = sensor(run, timeout=3600, execution_timeout=timedelta(hours=3))
    with pytest.raises(AirflowSensorTimeout):
        waiting.execute(context)
    again = sensing(second) | {"task_state_store": context["task_state_store"]}
    assert is_retry(again)
    with pytest.raises(AirflowSensorTimeout):
        waiting.execute(again)
    with pytest.raises(TaskDeferred) as deferral:
        sensor(run, timeout=24 * 3600, execution_timeout=timedelta(hours=3)).execute(again)
    assert stored(deferral.value).deadline == (second.start_date + timedelta(hours=3)).isoformat()


def test_after_a_clear_the_timeout_counts_anew(run: str) -> None:
    first, cleared = Try(1), Try(2)
    first.start_date = datetime.now(UTC) - timedelta(hours=2)
    context = sensing(first)
    with pytest.raises(AirflowSensorTimeout):
        sensor(run, timeout=3600).execute(context)
    again = sensing(cleared) | {"task_state_store": context["task_state_store"]}
    cleared.max_tries += 1
    assert not is_retry(again)
    with pytest.raises(TaskDeferred):
        sensor(run, timeout=3600).execute(again)


def test_a_run_that_has_ended_by_the_deadline_is_told_as_it_ended(seen: Seen, run: str) -> None:
    waiting, context = sensor(run, timeout=60), sensing(Try(1))
    with pytest.raises(TaskDeferred) as deferral:
        waiting.execute(context)
    job = str(seen.jobs()[0]["name"])
    seen.vertex.cancel(job)
    ended(seen)
    with pytest.raises(AirflowSkipException, match="soft_fail: JobCancelled"):
        sensor(run, soft_fail=True).execute_complete(
            context, {"status": "deadline", "position": None}, **deferral.value.kwargs or {}
        )


def test_a_run_that_was_cleared_between_its_end_and_the_sensors_is_waited_for_again(seen: Seen, run: str) -> None:
    waiting, context = sensor(run), sensing(Try(1))
    with pytest.raises(TaskDeferred):
        waiting.execute_complete(context, {"status": "done", "position": None})
    record = RecordStore(Services(seen.settings).storage, run).load()
    assert record.verdict is None


def test_the_environment_of_the_worker_is_that_of_the_triggerer(
    seen: Seen, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TaskDeferred) as deferral:
        sensor(run, timeout=2).execute(sensing(Try(1)))
    followed = deferred(Operator(**arguments(SLOW, deferrable=True)), Try(2))
    monkeypatch.setenv("TRAINOPS_ENVIRONMENT", "another")
    assert [stored(one).environment for one in (deferral.value, followed)] == ["test", "test"]
    assert event_of(stored(deferral.value))["status"] == "deadline"


def rescheduled(waiting: TrainingJobSensor, context: Any) -> Any:
    """One try in reschedule mode: each look is a process of its own."""
    context["ti"].get_first_reschedule_date = lambda _context: None
    while True:
        try:
            return waiting.execute(context)
        except AirflowRescheduleException:
            time.sleep(0.3)


UNKNOWN: list[tuple[Json, Callable[..., Any]]] = [
    ({"deferrable": True}, sensed),
    ({"deferrable": False}, poked),
    ({"deferrable": False, "mode": "reschedule"}, rescheduled),
]


@pytest.mark.case("C031")
@pytest.mark.parametrize(("mode", "wait"), UNKNOWN, ids=["deferred", "poke", "reschedule"])
def test_a_state_that_stays_unknown_ends_the_wait_by_every_way(
    seen: Seen, run: str, vertex_faults: Callable[..., None], mode: Json, wait: Callable[..., Any]
) -> None:
    vertex_faults("answer", method="customJobs.list", status=503, message="come back later", count=None)
    with pytest.raises(TransientError, match="come back later"):
        wait(sensor(run, max_unknown_time=timedelta(seconds=3), timeout=90, **mode), sensing(Try(1)))
    httpx.delete(f"{seen.url}/faults").raise_for_status()
    assert seen.states() in (["PENDING"], ["RUNNING"])


def test_a_state_that_is_known_in_between_is_unknown_anew_from_then_on(
    seen: Seen, run: str, vertex_faults: Callable[..., None]
) -> None:
    context = sensing(Try(1))
    waiting = sensor(run, deferrable=False, mode="reschedule", max_unknown_time=timedelta(seconds=2))

    def unknown_since() -> Any:
        (position,) = context["task_state_store"].values()
        return position["unknown_since"]

    vertex_faults("answer", method="customJobs.list", status=503, count=1)
    assert not waiting.poke(context).is_done
    assert unknown_since() is not None
    assert not waiting.poke(context).is_done
    assert unknown_since() is None
    time.sleep(2.5)
    vertex_faults("answer", method="customJobs.list", status=503, count=1)
    assert not waiting.poke(context).is_done
