"""Reports of users whose waiting task told something else than their job, or left it running."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowTaskTimeout
from airflow.sdk.execution_time.timeout import timeout
from tests.integration.run.old_task import Seen, Try, arguments, deferred, event_of, execute, stored

from trainops.errors import TransientError
from trainops.providers.google.cloud.operators.mlengine import MLEngineStartTrainingJobOperator as Operator
from trainops.sensors.training_job import TrainingJobSensor

SLOW = "import time; time.sleep(120)"
SHORT = "import time; time.sleep(4)"
Faults = Callable[..., None]


def ended(seen: Seen) -> list[str]:
    """The states of all jobs, once they are final."""
    deadline = time.monotonic() + 120
    while {"QUEUED", "PENDING", "RUNNING", "CANCELLING"} & set(seen.states()):
        assert time.monotonic() < deadline, seen.states()
        time.sleep(0.2)
    return seen.states()


@pytest.mark.case("C023")
@pytest.mark.case("C032")
@pytest.mark.parametrize("status", [403, 404])
@pytest.mark.parametrize("deferrable", [True, False], ids=["deferred", "on a worker"])
def test_a_task_that_may_not_look_at_its_job_fails_at_once_and_cancels_it(
    seen: Seen, vertex_faults: Faults, deferrable: bool, status: int
) -> None:
    operator = Operator(**arguments(SLOW, deferrable=deferrable, poll_interval=0.5))
    current = Try(1, max_tries=1)
    if deferrable:
        trigger = stored(deferred(operator, current))
        vertex_faults("answer", method="customJobs.list", status=status, message="not for you", count=None)
        event = event_of(trigger)
        with pytest.raises(AirflowFailException, match="not for you"):
            operator.execute_complete(current.context(), event)
    else:
        deferred(Operator(**arguments(SLOW, deferrable=True)), current)
        vertex_faults("answer", method="customJobs.list", status=status, message="not for you", count=None)
        with pytest.raises(AirflowFailException, match="not for you"):
            operator.execute(Try(2, max_tries=1).context())
    vertex_faults_cleared(seen)
    assert ended(seen) == ["CANCELLED"]
    assert seen.calls("customJobs.create") == 1


def vertex_faults_cleared(seen: Seen) -> None:
    """Let the stand-in behave again, to look at what became of the job."""
    httpx.delete(f"{seen.url}/faults").raise_for_status()


@pytest.mark.case("C023")
def test_a_task_that_is_told_to_leave_its_job_alone_leaves_it(seen: Seen, vertex_faults: Faults) -> None:
    operator = Operator(**arguments(SHORT, deferrable=True, cancel_on_kill=False))
    current = Try(1, max_tries=0)
    trigger = stored(deferred(operator, current))
    vertex_faults("answer", method="customJobs.list", status=403, count=None)
    event = event_of(trigger)
    with pytest.raises(AirflowFailException):
        operator.execute_complete(current.context(), event)
    vertex_faults_cleared(seen)
    assert ended(seen) == ["SUCCEEDED"]


@pytest.mark.case("C031")
@pytest.mark.case("C032")
@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_an_answer_that_may_pass_is_polled_through(seen: Seen, vertex_faults: Faults, status: int) -> None:
    deferred(Operator(**arguments(SHORT, deferrable=True)), Try(1))
    vertex_faults("answer", method="customJobs.list", status=status, count=3)
    assert execute(Operator(**arguments(SHORT)), Try(2))["verdict"] == "succeeded"
    assert seen.calls("customJobs.create") == 1


@pytest.mark.case("C031")
@pytest.mark.parametrize("deferrable", [True, False], ids=["deferred", "on a worker"])
def test_a_state_that_stays_unknown_fails_the_try_and_the_next_one_goes_on_with_the_job(
    seen: Seen, vertex_faults: Faults, deferrable: bool
) -> None:
    given = arguments("import time; time.sleep(12)", deferrable=True, max_unknown_time=timedelta(seconds=2))
    first = Operator(**given)
    trigger = stored(deferred(first, Try(1)))
    vertex_faults("answer", method="customJobs.list", status=503, message="come back later", count=None)
    with pytest.raises(TransientError, match="come back later"):
        if deferrable:
            first.execute_complete(Try(1).context(), event_of(trigger))
        else:
            Operator(**given | {"deferrable": False}).execute(Try(2).context())
    vertex_faults_cleared(seen)
    assert execute(Operator(**given | {"deferrable": False}), Try(3))["verdict"] == "succeeded"
    assert seen.calls("customJobs.create") == 1


@pytest.mark.case("C029")
@pytest.mark.case("C037")
@pytest.mark.case("C038")
@pytest.mark.case("C039")
def test_the_execution_timeout_ends_a_deferred_task_and_its_job(seen: Seen) -> None:
    operator = Operator(**arguments(SLOW, deferrable=True), execution_timeout=timedelta(seconds=8))
    current = Try(1)
    event = event_of(stored(deferred(operator, current)))
    with pytest.raises(AirflowFailException, match="DeadlinePassed"):
        operator.execute_complete(current.context(), event)
    assert ended(seen) == ["CANCELLED"]
    assert seen.calls("customJobs.cancel") == 1


@pytest.mark.case("C029")
@pytest.mark.case("C038")
def test_the_execution_timeout_ends_a_task_on_a_worker_and_its_job(seen: Seen) -> None:
    operator = Operator(**arguments(SLOW), execution_timeout=timedelta(seconds=8))
    airflows: Any = timeout
    with pytest.raises(AirflowTaskTimeout), airflows(8):  # what Airflow's task runner puts around execute()
        operator.execute(Try(1).context())
    assert ended(seen) == ["CANCELLED"]
    assert seen.calls("customJobs.cancel") == 1


def cancelled_by_somebody(seen: Seen) -> None:
    seen.vertex.cancel(str(seen.jobs()[0]["name"]))


ENDS: list[tuple[str, str, Callable[[Seen], None] | None, str]] = [
    ("succeeded", "pass", None, ""),
    ("failed", "import sys; sys.exit(1)", None, "JobFailed.*status of 1"),
    ("never", "import sys; sys.exit(2)", None, "AirflowFailException.*status of 2"),
    ("cancelled", SLOW, cancelled_by_somebody, "AirflowFailException.*cancelled"),
]


@pytest.mark.case("C030")
@pytest.mark.case("C111")
@pytest.mark.parametrize(("code", "act", "told"), [end[1:] for end in ENDS], ids=[end[0] for end in ENDS])
def test_every_way_of_waiting_tells_the_same_end(
    seen: Seen, code: str, act: Callable[[Seen], None] | None, told: str
) -> None:
    operator = Operator(**arguments(code, deferrable=True))
    current = Try(1)
    trigger = stored(deferred(operator, current))
    if act is not None:
        act(seen)
    event = event_of(trigger)
    outcomes = [
        outcome(lambda: operator.execute_complete(current.context(), event)),
        outcome(lambda: Operator(**arguments(code)).execute(Try(1).context())),
        outcome(lambda: sensed(trigger.record_uri)),
        outcome(lambda: poked(trigger.record_uri)),
    ]
    assert {one[0] for one in outcomes} == {outcomes[0][0]}
    assert {one[1] for one in outcomes} == {outcomes[0][1]}
    assert re.search(told, " ".join(outcomes[0]), re.DOTALL)


def outcome(act: Callable[[], Any]) -> tuple[str, str]:
    """What a task answers, or the error that it raises."""
    try:
        result = act()
    except Exception as error:
        return type(error).__name__, re.sub(r"\d{10,}", "N", str(error))  # a failed job is submitted again
    return "", str(result["verdict"])


def sensed(record_uri: str) -> Any:
    """What a deferrable sensor answers."""
    return TrainingJobSensor(task_id="wait", run=record_uri).execute(sensing(Try(1)))


def poked(record_uri: str) -> Any:
    """What a sensor answers that pokes."""
    sensor = TrainingJobSensor(task_id="wait", run=record_uri, deferrable=False)
    return sensor.poke(sensing(Try(1))).xcom_value


class Kept(dict[str, Any]):
    """The store in which a task keeps a value between its looks."""

    set = dict.__setitem__
    delete = dict.__delitem__


def sensing(current: Try) -> Any:
    """The context of a sensor's first try."""
    current.task = type("Task", (), {"retries": 2})  # type: ignore[attr-defined]
    current.max_tries = 2
    return current.context() | {"task_state_store": Kept()}
