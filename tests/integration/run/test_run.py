"""Reconciling against a real GCS server and the Vertex stand-in: exactly one job, whatever happens."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from trainops.errors import ConfigError, IntegrityError
from trainops.policy.lifecycle import Action
from trainops.policy.record import Attempt, Record, TaskTry, Verdict
from trainops.settings import Settings
from trainops.steps.end import end_run
from trainops.steps.housekeeping import LIVE, end_abandoned
from trainops.steps.record_store import RecordStore
from trainops.steps.run import Run
from trainops.steps.run_verdict import error_of, retry_helps, summary
from trainops.steps.services import Services
from trainops.steps.start import JobRequest, begin

OK = "import sys; print('hello from the replica'); sys.exit(0)"
SLOW = "import time; time.sleep(60)"


def job_request(code: str = OK, *, gpus: int = 0, **changes: Any) -> JobRequest:
    body: dict[str, Any] = {
        "scaleTier": "CUSTOM",
        "masterType": "n1-standard-8",
        "region": "us-central1",
        "masterConfig": {"imageUri": "example/image", "containerCommand": ["python", "-c"], "containerArgs": [code]},
    }
    if gpus:
        body["masterConfig"]["acceleratorConfig"] = {"type": "NVIDIA_TESLA_T4", "count": gpus}
    values: dict[str, Any] = {
        "job_key": "exp-run-submit_training", "run_key": "exp-run", "experiment": "exp", "task": "submit_training",
        "display_name": "exp-run", "training_input": body,
    }  # fmt: skip
    return JobRequest(**(values | changes))


def task_try(number: int = 1, **changes: Any) -> TaskTry:
    values: dict[str, Any] = {
        "dag_id": "train_exp", "run_id": "r", "task_id": "submit_training", "try_number": number, "max_tries": 2,
    }  # fmt: skip
    return TaskTry(**(values | changes))


class World:
    """One environment, and how a test acts in it."""

    def __init__(self, settings: Settings, faults: Callable[..., None]) -> None:
        self.services = Services(settings)
        self.settings = settings
        self.faults = faults
        self.said: list[str] = []
        self.uri = f"{settings.work}/runs/exp/exp-run/submit_training.json"

    def begin(self, request: JobRequest, current: TaskTry | None = None) -> Record:
        return begin(
            self.services.storage, self.settings, self.uri, request, current or task_try(), actor="submit_training"
        )[0]

    def run(self, actor: str = "submit_training") -> Run:
        return Run(self.services, self.uri, actor=actor, say=self.said.append)

    def until(self, what: str, run: Run | None = None, seconds: float = 120) -> Action:
        one = run or self.run()
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            action = one.advance()
            state = one.observed.state if one.observed else ""
            if action.what == what or state == what:
                return action
            time.sleep(0.2)
        raise AssertionError(f"not {what} within {seconds} s; last: {action}; said: {self.said}")

    @property
    def record(self) -> Record:
        return RecordStore(self.services.storage, self.uri).load()

    def creates(self) -> int:
        """Jobs that the stand-in really made."""
        return len(self.services.vertex("us-central1").list('labels.job-key="exp-run-submit_training"'))


@pytest.fixture
def world(
    vertex_settings: Settings, vertex_faults: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> World:
    monkeypatch.setenv("TRAINOPS_CONFIGS", str(tmp_path))
    (tmp_path / "gpu_pools.yaml").write_text(
        "pools:\n  - {accelerator: NVIDIA_TESLA_T4, region: us-central1, provisioning: standard, quota: 2}\n"
    )
    return World(vertex_settings, vertex_faults)


def test_a_job_is_submitted_once_followed_and_accepted(world: World) -> None:
    world.begin(job_request())
    run = world.run()
    assert run.advance().what == "wait"
    action = world.until("finish", run)
    assert action.verdict is Verdict.SUCCEEDED
    assert world.creates() == 1
    assert summary(world.record)["verdict"] == "succeeded"
    assert error_of(world.record) is None


@pytest.mark.case("C104")
def test_every_job_carries_the_labels_that_find_it_again(world: World) -> None:
    world.begin(job_request())
    world.run().advance()
    job = world.services.vertex("us-central1").list()[0]
    assert {key: job["labels"][key] for key in ("managed-by", "experiment", "run-key", "generation", "attempt")} == {
        "managed-by": "trainops", "experiment": "exp", "run-key": "exp-run", "generation": "1", "attempt": "1",
    }  # fmt: skip
    assert job["labels"]["spec-hash"] == world.record.spec_hash


@pytest.mark.case("C014")
def test_a_lost_reply_to_create_gives_one_job(world: World) -> None:
    world.begin(job_request())
    world.faults("drop_reply", method="customJobs.create")
    assert world.until("finish").verdict is Verdict.SUCCEEDED
    assert any("no clear answer" in line for line in world.said)
    assert world.creates() == 1


@pytest.mark.case("C003")
def test_a_retry_finds_the_job_of_the_try_that_died(world: World) -> None:
    world.begin(job_request(SLOW))
    world.run().advance()
    name = world.record.attempt and world.record.attempt.job_name
    again = world.begin(job_request("print('a deploy changed the code')"), task_try(2))
    assert again.generation == 1
    world.run("retry").advance()
    assert world.creates() == 1
    assert world.record.attempt is not None
    assert world.record.attempt.job_name == name
    world.run().cancel("the test is over")
    world.until("finish")


@pytest.mark.case("C012")
@pytest.mark.case("C021")
def test_a_clear_begins_a_generation_and_ends_the_job_of_the_one_before(world: World) -> None:
    world.begin(job_request(SLOW))
    world.run().advance()
    old = world.record.attempt
    assert old is not None
    world.begin(job_request(OK), task_try(2, max_tries=3, clear_number=1))
    assert world.record.generation == 2
    assert world.until("finish").verdict is Verdict.SUCCEEDED
    states = {job["name"]: job["state"] for job in world.services.vertex("us-central1").list()}
    assert states[str(old.job_name)] == "JOB_STATE_CANCELLED"
    assert sorted(states.values()) == ["JOB_STATE_CANCELLED", "JOB_STATE_SUCCEEDED"]
    assert world.record.earlier[0]["generation"] == 1


def test_a_clear_that_moves_the_job_to_another_region_ends_the_one_in_the_region_before(world: World) -> None:
    world.begin(job_request(SLOW))
    world.run().advance()
    moved = job_request(OK)
    moved.training_input["region"] = "europe-west4"
    world.begin(moved, task_try(2, max_tries=3, clear_number=1))
    assert world.until("finish").verdict is Verdict.SUCCEEDED
    states = [
        job["state"] for region in ("us-central1", "europe-west4") for job in world.services.vertex(region).list()
    ]
    assert states == ["JOB_STATE_CANCELLED", "JOB_STATE_SUCCEEDED"]


@pytest.mark.case("C002")
def test_a_retry_after_a_failed_job_submits_the_next_attempt_and_exit_code_2_does_not(world: World) -> None:
    world.begin(job_request("import sys; sys.exit(1)"))
    assert world.until("finish").verdict is Verdict.FAILED
    assert retry_helps(world.record)
    assert "status of 1" in str(error_of(world.record))
    world.begin(job_request(), task_try(2))
    world.until("finish")
    assert [item.exit_code for item in world.record.attempts] == [1, 1]


def test_a_trainer_that_says_never_is_not_tried_again(world: World) -> None:
    world.begin(job_request("import sys; sys.exit(2)"))
    assert world.until("finish").verdict is Verdict.FAILED
    assert not retry_helps(world.record)
    world.begin(job_request(), task_try(2))
    assert world.until("finish").verdict is Verdict.FAILED
    assert world.creates() == 1


def test_gpus_are_leased_before_the_job_exists_and_given_back_after_it(world: World) -> None:
    world.begin(job_request(SLOW, gpus=2))
    world.run().advance()
    ledger, _ = world.services.queue.snapshot()
    lease = ledger.leases["exp-run-submit_training"]
    assert (lease.state, lease.gpus) == ("bound", {"NVIDIA_TESLA_T4/us-central1/standard": 2})
    world.run().cancel("the test is over")
    world.until("finish")
    ledger, requests = world.services.queue.snapshot()
    assert (ledger.leases, requests) == ({}, [])


@pytest.mark.case("C048")
@pytest.mark.case("C049")
def test_a_second_run_waits_for_the_first_ones_gpus_and_says_so(world: World) -> None:
    world.begin(job_request(SLOW, gpus=2))
    world.run().advance()
    second = World(world.settings, world.faults)
    second.uri = f"{world.settings.work}/runs/exp/other/submit_training.json"
    second.begin(job_request(OK, gpus=1, job_key="other-submit_training", run_key="other"), task_try(run_id="other"))
    action = second.run().advance()
    assert action.what == "wait"
    lacking = "needs 1 x NVIDIA_TESLA_T4/us-central1/standard, 0 of 2 are free (exp-run-submit_training holds 2);"
    assert action.why.startswith(f"rank 1 of 1: {lacking}")
    world.run().cancel("make room")
    world.until("finish")
    assert second.until("finish").verdict is Verdict.SUCCEEDED


def test_a_run_cleared_while_it_waits_is_admitted_with_the_gpus_that_it_asks_for_now(world: World) -> None:
    first = World(world.settings, world.faults)
    first.uri = f"{world.settings.work}/runs/exp/other/submit_training.json"
    first.begin(job_request(SLOW, gpus=2, job_key="other-submit_training", run_key="other"), task_try(run_id="other"))
    first.run().advance()
    world.begin(job_request(OK, gpus=1))
    assert world.run().advance().what == "wait"
    world.begin(job_request(SLOW, gpus=2), task_try(2, max_tries=3, clear_number=1))
    assert "needs 2 x" in world.run().advance().why
    first.run().cancel("make room")
    first.until("finish")
    world.until("JOB_STATE_RUNNING")
    ledger, _ = world.services.queue.snapshot()
    assert ledger.leases["exp-run-submit_training"].gpus == {"NVIDIA_TESLA_T4/us-central1/standard": 2}
    world.run().cancel("the test is over")
    world.until("finish")


def test_a_gang_larger_than_the_pool_is_refused_before_it_waits(world: World) -> None:
    world.begin(job_request(OK, gpus=4))
    with pytest.raises(ConfigError, match="more than its quota can ever give"):
        world.run().advance()
    assert world.creates() == 0


def test_the_end_of_a_run_leaves_nothing_running(world: World) -> None:
    world.begin(job_request(SLOW, gpus=1))
    world.until("JOB_STATE_RUNNING")
    ended = end_run(world.services, "exp", "exp-run", actor="end_run", why="the run is over", say=world.said.append)
    assert ended == ["exp-run-submit_training"]
    assert [job["state"] for job in world.services.vertex("us-central1").list()] == ["JOB_STATE_CANCELLED"]
    assert world.record.verdict is Verdict.CANCELLED
    assert end_run(world.services, "exp", "exp-run", actor="end_run", why="again", say=world.said.append) == []


def test_a_record_of_another_task_is_left_alone(world: World) -> None:
    world.begin(job_request())
    with pytest.raises(IntegrityError, match="belongs to train_exp"):
        world.begin(job_request(), task_try(dag_id="somebody_else"))


def test_a_corrupt_record_is_reported_and_left_alone(world: World) -> None:
    world.services.storage.write_json(world.uri, {"kind": "trainops.record", "surprise": 1}, generation=0)
    with pytest.raises(IntegrityError, match="left alone"):
        world.begin(job_request())
    found = world.services.storage.read_json(world.uri)
    assert found is not None
    assert found.value == {"kind": "trainops.record", "surprise": 1}


@pytest.mark.parametrize("text", ["no JSON {", '["a list"]', '{"kind": "trainops.request", "surprise": 1}'])
def test_an_object_among_the_requests_that_is_none_stops_nobody_and_is_reported_and_left_alone(
    world: World, text: str
) -> None:
    foreign = f"{world.settings.work}/queue/requests/foreign.json"
    world.services.storage.write_bytes(foreign, text.encode(), generation=0)
    world.begin(job_request(SLOW, gpus=1))
    assert world.run().advance().what == "wait"
    assert world.record.job_names
    told = end_abandoned(world.services, lambda _dag, _run: "running", say=world.said.append)
    assert told["kept"] == ["exp-run-submit_training"]
    (problem,) = told["unseen"]
    assert foreign in problem
    assert problem in world.said
    assert world.services.storage.exists(foreign)


def test_an_intent_whose_process_died_is_submitted_again_only_with_a_lease(world: World) -> None:
    world.begin(job_request(OK, gpus=2))
    died = world.run("a process that died")
    died.services.queue.enqueue(world.record, world.uri)
    died.services.queue.tick()
    past = datetime.now(UTC) - timedelta(minutes=30)
    gone = Attempt(number=1, writer="dead", intent_at=past, create_deadline=past + timedelta(seconds=90))
    died.store.change(lambda record: record and record.told(past, "dead", "intends", attempts=(gone,)))
    world.services.queue.release("exp-run-submit_training")  # its reservation passed, and somebody else took the GPUs
    other = World(world.settings, world.faults)
    other.uri = f"{world.settings.work}/runs/exp/other/submit_training.json"
    other.begin(job_request(SLOW, gpus=2, job_key="other-submit_training", run_key="other"), task_try(run_id="other"))
    other.run().advance()
    assert world.run().advance().what == "wait"
    assert world.creates() == 0
    other.run().cancel("make room")
    other.until("finish")
    assert world.until("finish").verdict is Verdict.SUCCEEDED
    assert [attempt.number for attempt in world.record.attempts] == [1]


def test_a_job_whose_reservation_passed_before_it_was_bound_is_cancelled_and_queues_again(world: World) -> None:
    world.begin(job_request(SLOW, gpus=1))
    run = world.run()
    queue = world.services.queue
    bind = queue.bind

    def late(job_key: str, job_name: str) -> bool:
        queue.release(job_key)
        return bind(job_key, job_name)

    queue.bind = late  # type: ignore[method-assign]
    run.advance()
    queue.bind = bind  # type: ignore[method-assign]
    assert world.record.attempts[0].verdict is Verdict.QUOTA
    world.until("wait")
    states = {job["state"] for job in world.services.vertex("us-central1").list()}
    assert states <= {"JOB_STATE_CANCELLING", "JOB_STATE_CANCELLED"}
    run.cancel("the test is over")
    world.until("finish")


@pytest.mark.case("C023")
def test_housekeeping_ends_what_belongs_to_no_active_dag_run_and_leaves_the_rest_alone(world: World) -> None:
    world.begin(job_request(SLOW, gpus=1))
    world.run().advance()
    abandoned = World(world.settings, world.faults)
    abandoned.uri = f"{world.settings.work}/runs/exp/gone/submit_training.json"
    abandoned.begin(job_request(SLOW, gpus=1, job_key="gone-submit_training", run_key="gone"), task_try(run_id="gone"))
    abandoned.run().advance()
    states = {"r": "running", "gone": None}
    told = end_abandoned(world.services, lambda _dag, run: states[run], say=world.said.append)
    assert told == {"ended": ["gone-submit_training"], "kept": ["exp-run-submit_training"], "failed": [], "unseen": []}
    assert abandoned.record.verdict is Verdict.CANCELLED
    assert world.record.verdict is None
    states["r"] = "failed"
    assert end_abandoned(world.services, lambda _dag, run: states[run], say=world.said.append)["ended"] == [
        "exp-run-submit_training"
    ]
    ledger, requests = world.services.queue.snapshot()
    assert (ledger.leases, requests) == ({}, [])
    vertex = world.services.vertex("us-central1")
    assert (len(vertex.list()), vertex.list(LIVE)) == (2, [])  # what has ended is not even asked for


@pytest.mark.parametrize("status", [400, 403, 404])
def test_a_create_that_is_refused_ends_the_generation_at_once_and_says_why(world: World, status: int) -> None:
    world.begin(job_request(OK, gpus=1))
    world.faults("answer", method="customJobs.create", status=status, message="not for you")
    assert world.until("finish").verdict is Verdict.FAILED
    assert "not for you" in str(error_of(world.record))
    assert not retry_helps(world.record)
    assert world.creates() == 0
    assert world.services.queue.snapshot()[0].leases == {}


@pytest.mark.parametrize("status", [429, 503])
def test_a_create_that_may_help_later_is_asked_again_after_a_pause(world: World, status: int) -> None:
    world.begin(job_request(OK))
    world.faults("answer", method="customJobs.create", status=status, message="come back later")
    action = world.run().advance()
    assert action.what == "wait"
    assert world.record.verdict is None
    assert world.creates() == 0
