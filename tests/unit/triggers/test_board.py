from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from trainops.gcp.logs import Logs
from trainops.policy.lifecycle import TERMINAL, Job
from trainops.steps.run_logs import LogFollower
from trainops.steps.watch import UNSEEN
from trainops.triggers.board import CATCHING_UP_AT_ONCE, JOBS_PER_READING, LIVE_JOBS, TOGETHER, Follower, readings

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
NO_LOGS: Any = None


def follower(number: int, minutes_ago: float | None, *, caught_up: bool) -> Follower:
    log = LogFollower(cast("Logs", NO_LOGS))
    if minutes_ago is not None:
        log.pass_by(NOW - timedelta(minutes=minutes_ago))
    one = Follower(Job(name=f"projects/1/locations/r/customJobs/{number}", state=UNSEEN), f"key-{number}", log)
    one.caught_up = caught_up
    return one


def numbers(groups: Sequence[Sequence[Follower]]) -> list[list[int]]:
    return [[int(one.job.name.rsplit("/", 1)[-1]) for one in group] for group in groups]


def test_all_who_are_up_to_date_are_read_in_as_few_readings_as_a_filter_allows() -> None:
    groups = readings([follower(number, 1, caught_up=True) for number in range(2 * JOBS_PER_READING + 1)])
    assert [len(group) for group in groups] == [JOBS_PER_READING, JOBS_PER_READING, 1]


def test_a_run_that_begins_to_wait_late_in_its_job_does_not_make_the_others_read_their_old_lines_again() -> None:
    old = follower(1, 3 * 24 * 60, caught_up=False)
    assert numbers(readings([follower(2, 1, caught_up=True), old, follower(3, 2, caught_up=True)])) == [[1], [3, 2]]


def test_a_thousand_runs_that_begin_to_wait_at_once_catch_up_in_readings_that_fit_the_quota() -> None:
    spread_over_days = [follower(number, 60 * number, caught_up=False) for number in range(1000)]
    assert len(readings(spread_over_days)) == CATCHING_UP_AT_ONCE
    just_begun = [follower(number, number / 1000, caught_up=False) for number in range(1000)]
    assert [len(group) for group in readings(just_begun)] == [JOBS_PER_READING] * 5


@given(st.lists(st.tuples(st.none() | st.floats(0, 10_000), st.booleans()), max_size=50))
def test_every_run_is_read_once_or_waits_to_catch_up(runs: list[tuple[float | None, bool]]) -> None:
    followers = [follower(number, ago, caught_up=caught_up) for number, (ago, caught_up) in enumerate(runs)]
    groups = readings(followers)
    read = [number for group in numbers(groups) for number in group]
    assert len(read) == len(set(read))
    assert {number for number, (_, caught_up) in enumerate(runs) if caught_up} <= set(read)
    assert any(followers) <= any(groups)  # as long as anybody follows, somebody is read
    for group in groups:
        starts = [one.log.after for one in group if one.log.after is not None]
        assert all(one.caught_up for one in group) or not starts or max(starts) - min(starts) <= TOGETHER


def test_the_list_leaves_out_every_state_that_a_job_never_leaves_and_no_other() -> None:
    assert {part.split('"')[1] for part in LIVE_JOBS.split(" AND ")[1:]} == TERMINAL
