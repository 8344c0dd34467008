from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainops.policy.candidates import BACK_OFF
from trainops.policy.lifecycle import (
    TERMINAL,
    VANISH_GRACE,
    Action,
    Job,
    Lease,
    begins_generation,
    current_job,
    next_action,
)
from trainops.policy.record import Attempt, CancelOrder, Limits, Record, TaskTry, Verdict

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
NAME = "projects/p/locations/us-central1/customJobs/1"
OWNER = TaskTry(dag_id="train_x", run_id="r", task_id="submit_training", ti_id="a", max_tries=2)
FREE, WAITING = Lease(state="none"), Lease(state="waiting", reason="2 GPUs are free")
ADMITTED = Lease(state="reserved", gpus={"NVIDIA_TESLA_T4/us-central1/standard": 2})


def record(*attempts: Attempt, **changes: Any) -> Record:
    values: dict[str, Any] = {
        "job_key": "x-1-submit_training", "run_key": "x-1", "experiment": "x", "owner": OWNER, "opened_at": NOW,
        "region": "us-central1", "spec": {"jobSpec": {}}, "spec_hash": "h", "folder": "gs://w/runs/x/x-1/g1",
        "accelerators": {"NVIDIA_TESLA_T4": 2}, "attempts": attempts,
    }  # fmt: skip
    return Record(**(values | changes))


def attempt(number: int = 1, **changes: Any) -> Attempt:
    values: dict[str, Any] = {
        "number": number, "writer": "w", "intent_at": NOW, "create_deadline": NOW + timedelta(seconds=90),
    }  # fmt: skip
    return Attempt(**(values | changes))


def bound(number: int = 1, **changes: Any) -> Attempt:
    return attempt(number, job_name=NAME, bound_at=NOW, **changes)


def job(state: str = "RUNNING", name: str = NAME, **changes: Any) -> Job:
    values: dict[str, Any] = {"generation": 1, "attempt": 1, "create_time": "2026-11-30T12:00:00Z"}
    return Job(name=name, state=f"JOB_STATE_{state}", **(values | changes))


def ask(one: Record, *jobs: Job, lease: Lease = ADMITTED, now: datetime = NOW) -> Action:
    return next_action(one, jobs, lease, now)


def test_a_new_record_takes_its_place_in_the_queue() -> None:
    assert ask(record(), lease=FREE).what == "enqueue"


def test_a_job_without_accelerators_does_not_queue() -> None:
    assert ask(record(accelerators={}), lease=FREE).what == "submit"


def test_waiting_tells_the_reason_of_the_queue() -> None:
    action = ask(record(), lease=WAITING)
    assert (action.what, action.why) == ("wait", "2 GPUs are free")


def test_an_admitted_record_submits_attempt_one() -> None:
    action = ask(record())
    assert (action.what, action.attempt) == ("submit", 1)


def test_nobody_creates_while_another_process_may_be_creating() -> None:
    assert ask(record(attempt())).what == "wait"


def test_an_intent_without_a_job_is_submitted_again_after_its_deadline_under_the_same_number() -> None:
    action = ask(record(attempt()), now=NOW + timedelta(seconds=91))
    assert (action.what, action.attempt) == ("submit", 1)


def test_a_job_whose_reply_was_lost_is_bound_and_not_created_again() -> None:
    action = ask(record(attempt()), job("PENDING"))
    assert action.what == "bind"
    assert action.job is not None
    assert action.job.name == NAME


def test_of_two_jobs_of_one_attempt_the_oldest_is_kept_and_the_other_cancelled() -> None:
    younger = job(name="younger", create_time="2026-11-30T12:00:01Z")
    action = ask(record(attempt()), younger, job(name="older", create_time="2026-11-30T12:00:00Z"))
    assert action.what == "cancel_job"
    assert action.job == younger


@pytest.mark.parametrize("changes", [{"generation": 2}, {"attempt": 2}])
def test_a_live_job_of_another_generation_or_attempt_is_cancelled(changes: dict[str, Any]) -> None:
    stray = job(name="stray", **changes)
    action = ask(record(bound()), job(), stray)
    assert (action.what, action.job) == ("cancel_job", stray)


def test_no_attempt_starts_while_an_earlier_job_is_still_being_cancelled() -> None:
    assert ask(record(generation=2), job("CANCELLING")).what == "wait"


@pytest.mark.case("C111")
@pytest.mark.parametrize("state", ["QUEUED", "PENDING", "RUNNING", "PAUSED", "UPDATING", "CANCELLING", "NEVER_SEEN"])
def test_live_and_unknown_states_are_waited_for(state: str) -> None:
    assert ask(record(bound()), job(state)).what == "wait"


@pytest.mark.case("C030")
@pytest.mark.case("C111")
@pytest.mark.parametrize(
    ("state", "verdict"),
    [
        ("SUCCEEDED", Verdict.SUCCEEDED),
        ("CANCELLED", Verdict.CANCELLED),
        ("EXPIRED", Verdict.FAILED),
        ("PARTIALLY_SUCCEEDED", Verdict.FAILED),
    ],
)
def test_terminal_states_finish_with_their_verdict(state: str, verdict: Verdict) -> None:
    action = ask(record(bound()), job(state))
    assert (action.what, action.verdict) == ("finish", verdict)


FAILURES = [
    (3, "The replica workerpool0-0 exited with a non-zero status of 1. ...", "finish", Verdict.FAILED, 1),
    (3, "The replica workerpool0-0 exited with a non-zero status of 2. ...", "finish", Verdict.FAILED, 2),
    (8, "Resources are insufficient in region: us-central1.", "end_attempt", Verdict.STOCKOUT, None),
    (8, "The following quota metrics exceed quota limits: x", "end_attempt", Verdict.QUOTA, None),
    (13, "Internal error occurred for the current attempt", "end_attempt", Verdict.INTERNAL, None),
    (0, "", "finish", Verdict.FAILED, None),
]


@pytest.mark.case("C081")
@pytest.mark.parametrize(("code", "message", "what", "verdict", "exit_code"), FAILURES)
def test_failures_are_told_apart(code: int, message: str, what: str, verdict: Verdict, exit_code: int | None) -> None:
    action = ask(record(bound()), job("FAILED", error_code=code, error_message=message))
    assert (action.what, action.verdict, action.exit_code) == (what, verdict, exit_code)


def test_a_stockout_of_spot_machines_is_a_loss_that_resumes() -> None:
    lost = job("FAILED", error_code=8, error_message="STOCKOUT")
    assert ask(record(bound(), provisioning="spot"), lost).verdict is Verdict.SPOT_LOST


def test_a_job_that_made_room_ends_its_attempt_and_the_next_one_follows() -> None:
    assert ask(record(bound()), job("SUCCEEDED", preempted=True)).verdict is Verdict.PREEMPTED
    after = record(bound(verdict=Verdict.PREEMPTED, ended_at=NOW))
    action = ask(after, job("SUCCEEDED", preempted=True))
    assert (action.what, action.attempt) == ("submit", 2)


def test_the_pause_after_stockouts_doubles() -> None:
    def out(number: int) -> Attempt:
        return bound(number, verdict=Verdict.STOCKOUT, ended_at=NOW)

    assert ask(record(out(1)), now=NOW + BACK_OFF - timedelta(seconds=1)).what == "wait"
    assert ask(record(out(1)), now=NOW + BACK_OFF).what == "submit"
    assert ask(record(out(1), out(2)), now=NOW + BACK_OFF).what == "wait"
    assert ask(record(out(1), out(2)), now=NOW + 2 * BACK_OFF).what == "submit"


def test_attempts_are_bounded() -> None:
    used = record(bound(verdict=Verdict.VANISHED, message="somebody deleted it"), limits=Limits(max_attempts=1))
    action = ask(used)
    assert (action.what, action.verdict) == ("finish", Verdict.FAILED)
    assert "somebody deleted it" in action.why


@pytest.mark.parametrize("verdict", [Verdict.PREEMPTED, Verdict.SPOT_LOST])
def test_a_job_whose_machines_are_taken_again_and_again_goes_on(verdict: Verdict) -> None:
    taken = [bound(number, verdict=verdict) for number in range(1, 41)]
    action = ask(record(*taken), now=NOW + timedelta(hours=1))
    assert (action.what, action.attempt) == ("submit", 41)


def test_a_bound_job_missing_from_the_list_has_a_grace_and_is_then_gone() -> None:
    assert ask(record(bound())).what == "wait"
    action = ask(record(bound()), now=NOW + VANISH_GRACE)
    assert (action.what, action.verdict) == ("end_attempt", Verdict.VANISHED)


def cancelled(*attempts: Attempt) -> Record:
    return record(*attempts, cancel=CancelOrder(by="end_run", why="the run is over", at=NOW))


def test_a_cancel_order_cancels_the_live_job_and_finishes_when_that_is_confirmed() -> None:
    assert ask(cancelled(bound()), job()).what == "cancel_job"
    assert ask(cancelled(bound()), job("CANCELLING")).what == "wait"
    assert ask(cancelled(bound()), job("CANCELLED")).verdict is Verdict.CANCELLED


def test_a_cancel_order_waits_for_a_create_that_may_still_arrive() -> None:
    assert ask(cancelled(attempt())).what == "wait"
    assert ask(cancelled(attempt()), now=NOW + timedelta(seconds=91)).what == "finish"


@pytest.mark.case("C039")
def test_a_passed_deadline_orders_the_end_unless_the_job_has_ended() -> None:
    late = record(bound(), limits=Limits(finish_by=NOW - timedelta(seconds=1)))
    assert (ask(late, job()).what, ask(late, job()).verdict) == ("order_cancel", Verdict.DEADLINE)
    assert ask(late, job("SUCCEEDED")).verdict is Verdict.SUCCEEDED


def test_a_job_that_succeeded_before_the_cancel_of_a_passed_deadline_came_has_succeeded() -> None:
    order = CancelOrder(by="sensor", why="too late", at=NOW, verdict=Verdict.DEADLINE)
    assert ask(record(bound(), cancel=order), job("SUCCEEDED")).verdict is Verdict.SUCCEEDED
    assert ask(record(bound(), cancel=order), job("FAILED")).verdict is Verdict.DEADLINE
    assert ask(cancelled(bound()), job("SUCCEEDED")).verdict is Verdict.CANCELLED


def test_a_lease_of_an_earlier_job_is_given_back_before_the_next_attempt_queues() -> None:
    assert ask(record(), lease=Lease(state="bound")).what == "release"


def test_waiting_for_gpus_ends_at_its_deadline_but_a_job_does_not() -> None:
    limits = Limits(submit_by=NOW - timedelta(seconds=1))
    assert ask(record(limits=limits), lease=WAITING).what == "order_cancel"
    assert ask(record(bound(), limits=limits), job()).what == "wait"


def test_a_closed_record_still_cancels_jobs_that_turn_up() -> None:
    closed = record(bound(verdict=Verdict.VANISHED), verdict=Verdict.CANCELLED)
    assert ask(closed, job()).what == "cancel_job"
    assert ask(closed).what == "finish"


@pytest.mark.case("C012")
@pytest.mark.parametrize(
    ("max_tries", "clear_number", "ended", "begins"),
    [
        (2, 0, None, False),  # a retry after a crash
        (2, 0, "failed", False),  # a retry after a failure
        (3, 1, "submitted", True),  # a clear of the finished task
        (3, 1, None, True),  # a clear of the deferred task
        (2, 1, "cleared", True),  # a clear of the running task
        (2, 1, None, False),  # a retry after a crash, while another task of the run was cleared
        (2, 1, "failed", False),  # a retry, while another task of the run was cleared
        (2, 1, "stopped", False),  # the same, after its worker was stopped
    ],
)
def test_a_clear_begins_a_generation_and_a_retry_does_not(
    max_tries: int, clear_number: int, ended: str | None, begins: bool
) -> None:
    before = record(owner=OWNER.model_copy(update={"ended": ended}))
    now = OWNER.model_copy(update={"max_tries": max_tries, "clear_number": clear_number, "ti_id": "b"})
    assert begins_generation(before, now) is begins


STATES = [
    "QUEUED", "RUNNING", "CANCELLING", "SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED", "WHATEVER",
]  # fmt: skip
TIMES = st.one_of(st.none(), st.integers(-400, 400).map(lambda minutes: NOW + timedelta(minutes=minutes)))
JOBS = st.builds(
    Job, name=st.sampled_from([NAME, "b", "c"]),
    state=st.one_of(st.sampled_from([f"JOB_STATE_{name}" for name in STATES]), st.text(max_size=5)),
    create_time=st.sampled_from(["", "1", "2"]), generation=st.integers(0, 2), attempt=st.integers(0, 2),
    error_code=st.sampled_from([-1, 0, 3, 7, 8, 13]), error_message=st.text(max_size=5), preempted=st.booleans(),
)  # fmt: skip
ATTEMPTS = st.lists(
    st.builds(
        attempt, number=st.integers(1, 2), job_name=st.sampled_from([None, NAME, "b"]), bound_at=TIMES, ended_at=TIMES,
        create_deadline=TIMES.filter(bool), verdict=st.sampled_from([None, *Verdict]),
    ),
    max_size=2,
)  # fmt: skip
RECORDS = st.builds(
    lambda attempts, **rest: record(*attempts, **rest), ATTEMPTS, generation=st.integers(1, 2),
    verdict=st.sampled_from([None, *Verdict]), provisioning=st.sampled_from(["standard", "spot", "flex_start"]),
    accelerators=st.sampled_from([{}, {"NVIDIA_TESLA_T4": 2}]),
    limits=st.builds(Limits, submit_by=TIMES, finish_by=TIMES, max_attempts=st.integers(0, 3)),
    cancel=st.one_of(
        st.none(), st.builds(CancelOrder, by=st.just("b"), why=st.just("w"), at=st.just(NOW),
                             verdict=st.sampled_from([Verdict.CANCELLED, Verdict.DEADLINE])),
    ),
)  # fmt: skip
LEASES = st.builds(
    Lease, state=st.sampled_from(["none", "waiting", "reserved", "bound"]), reason=st.sampled_from(["", "0 are free"])
)


@given(RECORDS, st.lists(JOBS, max_size=3, unique_by=lambda item: item.name), LEASES, TIMES.filter(bool))
def test_every_observation_has_one_answer_with_a_reason(
    one: Record, jobs: list[Job], lease: Lease, now: datetime
) -> None:
    action = next_action(one, tuple(jobs), lease, now)
    assert action.why
    assert action == next_action(one, tuple(reversed(jobs)), lease, now)


@given(RECORDS, st.lists(JOBS, max_size=3, unique_by=lambda item: item.name), LEASES, TIMES.filter(bool))
def test_nothing_ends_while_a_job_of_the_job_key_lives(
    one: Record, jobs: list[Job], lease: Lease, now: datetime
) -> None:
    if next_action(one, tuple(jobs), lease, now).what == "finish":
        assert not any(item.live for item in jobs)


@given(RECORDS, st.lists(JOBS, max_size=3, unique_by=lambda item: item.name))
def test_nothing_is_submitted_while_a_job_of_the_job_key_lives(one: Record, jobs: list[Job]) -> None:
    action = next_action(one, tuple(jobs), ADMITTED, NOW + timedelta(days=1))
    followed = current_job(one, tuple(jobs))
    if any(item.live for item in jobs) and followed is None:
        assert action.what != "submit"
    if action.what == "submit":
        assert all(item.state in TERMINAL for item in jobs)
