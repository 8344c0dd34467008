"""What a generation has cost: from the moment at which Google began to run its machines, by the price of its start."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainops.policy.lifecycle import Action, Job, Lease, next_action
from trainops.policy.record import Attempt, Candidate, Limits, Record, TaskTry, Verdict
from trainops.policy.spending import gpu_hours, over_cap, ran_seconds, spent_usd

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
NAME = "projects/p/locations/us-central1/customJobs/1"
OWNER = TaskTry(dag_id="train_x", run_id="r", task_id="submit_training")


def attempt(number: int = 1, **changes: Any) -> Attempt:
    values: dict[str, Any] = {
        "number": number, "writer": "w", "intent_at": NOW, "create_deadline": NOW, "job_name": NAME, "bound_at": NOW,
        "usd_per_hour": 2.0,
    }  # fmt: skip
    return Attempt(**(values | changes))


def record(*attempts: Attempt, cap: float | None = None, gpus: int = 4) -> Record:
    elsewhere = Candidate(region="us-east1", accelerators={"NVIDIA_L4": 8}, spec={})
    return Record(
        job_key="x-1-t", run_key="x-1", experiment="x", owner=OWNER, opened_at=NOW, region="us-central1", spec={},
        spec_hash="h", folder="gs://w/g1", accelerators={"NVIDIA_L4": gpus}, alternatives=(elsewhere,),
        attempts=attempts, limits=Limits(max_usd=cap),
    )  # fmt: skip


def job(state: str = "RUNNING", **changes: Any) -> Job:
    return Job(name=NAME, state=f"JOB_STATE_{state}", generation=1, attempt=1, **changes)


def ask(one: Record, seen: Job, now: datetime) -> Action:
    return next_action(one, (seen,), Lease(state="bound"), now)


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ({"job_name": None, "bound_at": None}, 0.0),
        ({}, 7200.0),
        ({"started_at": NOW + HOUR}, 3600.0),
        ({"ended_at": NOW + HOUR}, 3600.0),
        ({"ended_at": NOW + HOUR, "ran_seconds": 0.0}, 0.0),
        ({"started_at": NOW + 3 * HOUR}, 0.0),
    ],
)
def test_machines_run_from_their_start_to_their_end(changes: dict[str, Any], seconds: float) -> None:
    assert ran_seconds(attempt(**changes), NOW + 2 * HOUR) == pytest.approx(seconds)


def test_attempts_add_up_each_at_its_own_price_and_with_its_own_gpus() -> None:
    ended = {"verdict": Verdict.PREEMPTED, "ended_at": NOW + HOUR}
    unpriced = attempt(3, ran_seconds=3600.0, usd_per_hour=None, **ended)
    seen = record(
        attempt(1, ran_seconds=1800.0, **ended),
        attempt(2, ran_seconds=3600.0, candidate=1, usd_per_hour=5.0, **ended),
        unpriced,
    )
    assert spent_usd(seen, NOW + 9 * HOUR) == pytest.approx(1.0 + 5.0)
    assert gpu_hours(seen, NOW + 9 * HOUR) == pytest.approx(0.5 * 4 + 8 + 4)


def test_a_run_that_has_cost_its_cap_is_ended_with_the_figures() -> None:
    seen = record(attempt(), cap=3.0)
    running = job(started_at=NOW)
    assert ask(seen, running, NOW + timedelta(minutes=89)).what == "wait"
    action = ask(seen, running, NOW + timedelta(minutes=91))
    assert (action.what, action.verdict) == ("order_cancel", Verdict.COST_CAP)
    assert "3.03 USD" in action.why
    assert "its cap is 3 USD" in action.why


def test_a_job_that_waits_for_machines_costs_nothing() -> None:
    assert ask(record(attempt(), cap=3.0), job("PENDING"), NOW + 9 * HOUR).what == "wait"


def test_no_further_attempt_begins_when_the_cap_is_used_up() -> None:
    ended = attempt(verdict=Verdict.PREEMPTED, ended_at=NOW + 2 * HOUR, ran_seconds=7200.0)
    action = next_action(record(ended, cap=4.0), (), Lease(state="none"), NOW + 3 * HOUR)
    assert (action.what, action.verdict) == ("order_cancel", Verdict.COST_CAP)


def test_a_job_that_succeeded_before_the_cap_was_noticed_is_a_success() -> None:
    assert ask(record(attempt(), cap=3.0), job("SUCCEEDED", started_at=NOW), NOW + 9 * HOUR).what == "finish"


@given(st.lists(st.floats(0, 1e6), max_size=8), st.floats(0.01, 1e4), st.none() | st.floats(0.01, 1e6))
def test_the_cap_is_reached_exactly_when_the_sum_is(seconds: list[float], price: float, cap: float | None) -> None:
    attempts = [attempt(n + 1, ran_seconds=ran, usd_per_hour=price) for n, ran in enumerate(seconds)]
    seen = record(*attempts, cap=cap)
    reached = cap is not None and spent_usd(seen, NOW) >= cap
    assert bool(over_cap(seen, NOW)) is reached
