"""When experiments run by themselves: a cron that does not start an expensive job because somebody enabled a DAG."""

from __future__ import annotations

from datetime import timedelta

from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction
from airflow.timetables.trigger import CronTriggerTimetable
from pendulum import DateTime, now

JUST_PASSED = timedelta(minutes=2)
"""A moment that passed this recently still counts: the DAG may be parsed between it and the scheduler's next look."""


class ExperimentTimetable(CronTriggerTimetable):
    """Airflow's cron trigger, but for the first run: without catchup that is the next moment, not the last one.

    Airflow starts the last run that was missed as soon as a DAG is enabled. For a report that is welcome; for hours of
    GPUs, asked for by a click on a switch, it is not.
    """

    description = "cron; enabling it starts nothing by itself"

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """The next run; the first one is not before now."""
        if last_automated_data_interval is None and not restriction.catchup:
            restriction = restriction._replace(earliest=_later(restriction.earliest, now("UTC") - JUST_PASSED))
            restriction = restriction._replace(catchup=True)
        return super().next_dagrun_info(
            last_automated_data_interval=last_automated_data_interval, restriction=restriction
        )


def _later(first: DateTime | None, second: DateTime) -> DateTime:
    return second if first is None else max(first, second)
