"""Where the next attempt may run, and when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainops.policy.candidates import (
    BACK_OFF,
    LONGEST_BACK_OFF,
    candidate_to_start,
    next_start,
    pause_until,
    spot_is_lost,
    windows,
)
from trainops.policy.record import Attempt, Candidate, Limits, Record, TaskTry, Verdict

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
OWNER = TaskTry(dag_id="train_x", run_id="r", task_id="submit_training")
OUT, QUOTA, LOST, INTERNAL = Verdict.STOCKOUT, Verdict.QUOTA, Verdict.SPOT_LOST, Verdict.INTERNAL


def place(region: str, model: str = "standard", **more: Any) -> Candidate:
    return Candidate(region=region, accelerators={"NVIDIA_L4": 2}, provisioning=model, spec={}, **more)


def ended(number: int, verdict: Verdict, candidate: int = 0, at: datetime = NOW) -> Attempt:
    return Attempt(
        number=number, writer="w", intent_at=at, create_deadline=at, verdict=verdict, ended_at=at, candidate=candidate
    )


def record(*places: Candidate, attempts: tuple[Attempt, ...] = (), **limits: Any) -> Record:
    first, *others = places
    return Record(
        job_key="x-1-t", run_key="x-1", experiment="x", owner=OWNER, opened_at=NOW, region=first.region, spec={},
        spec_hash="h", folder="gs://w/g1", accelerators=first.accelerators, provisioning=first.provisioning,
        alternatives=tuple(others), attempts=attempts, limits=Limits(**limits),
    )  # fmt: skip


WEST, EAST, SPOT = place("us-west1"), place("us-east1"), place("us-west1", "spot")
AFTER_SPOT = place("us-west1", after_spot=True)


def test_the_first_choice_goes_first_and_at_once() -> None:
    fresh = record(WEST, EAST)
    assert next_start(fresh, NOW) is None
    assert candidate_to_start(fresh, NOW) == 0
    assert candidate_to_start(fresh, NOW, EAST.gpus) == 1


@pytest.mark.parametrize("verdict", [OUT, QUOTA])
def test_what_is_lacking_in_one_place_leaves_the_other_open(verdict: Verdict) -> None:
    seen = record(WEST, EAST, attempts=(ended(1, verdict),))
    assert next_start(seen, NOW) is None
    assert candidate_to_start(seen, NOW) == 1
    assert candidate_to_start(seen, NOW + BACK_OFF) == 0


@pytest.mark.parametrize("verdict", [LOST, INTERNAL])
def test_what_says_nothing_about_the_place_pauses_them_all(verdict: Verdict) -> None:
    seen = record(SPOT, EAST, attempts=(ended(1, verdict),))
    assert next_start(seen, NOW) == NOW + BACK_OFF
    assert candidate_to_start(seen, NOW + BACK_OFF) == 0


def test_each_place_counts_its_own_failures_in_a_row() -> None:
    attempts = (ended(1, OUT, 0), ended(2, OUT, 1), ended(3, OUT, 0))
    assert pause_until(record(WEST, EAST, attempts=attempts), 0) == NOW + 2 * BACK_OFF
    assert pause_until(record(WEST, EAST, attempts=attempts), 1) == NOW + BACK_OFF


def test_an_attempt_that_ran_ends_the_row() -> None:
    attempts = (ended(1, OUT), ended(2, Verdict.PREEMPTED), ended(3, OUT))
    assert pause_until(record(WEST, attempts=attempts), 0) == NOW + BACK_OFF


@pytest.mark.parametrize(("losses", "where"), [(0, 0), (1, 0), (2, 1)])
def test_spot_machines_are_given_up_after_so_many_losses(losses: int, where: int) -> None:
    attempts = tuple(ended(number + 1, LOST) for number in range(losses))
    seen = record(SPOT, AFTER_SPOT, attempts=attempts, max_spot_losses=2)
    assert spot_is_lost(seen) is (losses == 2)
    assert candidate_to_start(seen, NOW + timedelta(hours=1)) == where


def test_from_a_moment_on_no_attempt_begins_on_spot_machines() -> None:
    until = NOW + timedelta(hours=2)
    seen = record(SPOT, AFTER_SPOT, spot_until=until)
    assert candidate_to_start(seen, until - timedelta(seconds=1)) == 0
    assert candidate_to_start(seen, until) == 1
    assert next_start(seen, until) == until


def test_on_demand_machines_that_the_user_listed_are_open_from_the_beginning() -> None:
    seen = record(SPOT, WEST, attempts=(ended(1, OUT),), max_spot_losses=2)
    assert candidate_to_start(seen, NOW) == 1


def test_without_anything_after_spot_the_job_stays_where_it_can() -> None:
    seen = record(SPOT, attempts=(ended(1, LOST), ended(2, LOST)), max_spot_losses=2)
    assert candidate_to_start(seen, NOW + timedelta(hours=1)) == 0


def test_what_nobody_asks_for_is_not_started_on() -> None:
    assert candidate_to_start(record(WEST), NOW, {"NVIDIA_L4/mars/standard": 2}) is None


ATTEMPTS = st.lists(st.tuples(st.sampled_from(list(Verdict)), st.integers(0, 2), st.integers(0, 4000)), max_size=12)


@given(
    ATTEMPTS,
    st.none() | st.integers(1, 5),
    st.none() | st.integers(0, 5000),
    st.integers(0, 9000),
    st.permutations([WEST, EAST, SPOT, AFTER_SPOT]),
)
def test_there_is_always_a_place_to_start_within_the_longest_pause(
    ends: list[tuple[Verdict, int, int]], losses: int | None, spot: int | None, passed: int, places: list[Candidate]
) -> None:
    attempts = tuple(
        ended(number + 1, verdict, candidate, NOW + timedelta(seconds=at))
        for number, (verdict, candidate, at) in enumerate(ends)
    )
    until = None if spot is None else NOW + timedelta(seconds=spot)
    seen = record(*places, attempts=attempts, max_spot_losses=losses, spot_until=until)
    last = max((attempt.ended_at for attempt in attempts if attempt.ended_at), default=NOW)
    now = max(last, NOW + timedelta(seconds=passed))
    start = next_start(seen, now) or now
    assert start <= max(now, last + LONGEST_BACK_OFF)
    number = candidate_to_start(seen, max(now, start))
    assert number is not None
    (window,) = [item for item in windows(seen) if item.number == number]
    assert window.is_open(max(now, start))


@given(ATTEMPTS, st.integers(0, 2000))
def test_of_a_record_with_one_place_nothing_changed(ends: list[tuple[Verdict, int, int]], passed: int) -> None:
    """It pauses after its last attempt, the longer the more attempts in a row ended for want or luck."""
    attempts = tuple(ended(number + 1, verdict) for number, (verdict, _, _) in enumerate(ends))
    in_a_row = 0
    for attempt in reversed(attempts):
        if attempt.verdict not in {OUT, QUOTA, LOST, INTERNAL}:
            break
        in_a_row += 1
    wanted = NOW + min(LONGEST_BACK_OFF, BACK_OFF * 2 ** (in_a_row - 1)) if in_a_row else None
    assert next_start(record(WEST, attempts=attempts), NOW + timedelta(seconds=passed)) == wanted
