from __future__ import annotations

import pendulum
from airflow.timetables.base import DataInterval, TimeRestriction

from trainops.dag_kit.timetable import JUST_PASSED, ExperimentTimetable

START = pendulum.datetime(2026, 1, 1, tz="UTC")


def restriction(*, catchup: bool) -> TimeRestriction:
    return TimeRestriction(earliest=START, latest=None, catchup=catchup)


def nightly(minutes_ago: float) -> ExperimentTimetable:
    """A schedule whose last moment was some minutes ago."""
    last = pendulum.now("UTC").subtract(seconds=round(minutes_ago * 60))
    return ExperimentTimetable(f"{last.minute} {last.hour} * * *", timezone="UTC")


def test_the_first_run_is_the_next_moment_and_not_the_last_one() -> None:
    found = nightly(120).next_dagrun_info(last_automated_data_interval=None, restriction=restriction(catchup=False))
    assert found is not None
    assert found.run_after > pendulum.now("UTC")


def test_a_moment_that_just_passed_counts() -> None:
    just = nightly(JUST_PASSED.total_seconds() / 60 - 2)
    found = just.next_dagrun_info(last_automated_data_interval=None, restriction=restriction(catchup=False))
    assert found is not None
    assert found.run_after < pendulum.now("UTC")


def test_a_moment_of_a_few_minutes_ago_does_not_count() -> None:
    found = nightly(4).next_dagrun_info(last_automated_data_interval=None, restriction=restriction(catchup=False))
    assert found is not None
    assert found.run_after > pendulum.now("UTC")


def test_catchup_begins_at_the_start_date() -> None:
    found = nightly(120).next_dagrun_info(last_automated_data_interval=None, restriction=restriction(catchup=True))
    assert found is not None
    assert found.run_after.date() == START.date()


def test_after_the_first_run_it_is_airflows_own_cron_trigger() -> None:
    timetable = nightly(120)
    last = pendulum.now("UTC").subtract(days=3)
    info = timetable.next_dagrun_info(
        last_automated_data_interval=DataInterval(last, last), restriction=restriction(catchup=False)
    )
    assert info is not None
    assert info.run_after < pendulum.now("UTC")


def test_a_schedule_survives_serialization() -> None:
    timetable = ExperimentTimetable("30 2 * * *", timezone="Europe/Berlin")
    assert ExperimentTimetable.deserialize(timetable.serialize()).serialize() == timetable.serialize()
