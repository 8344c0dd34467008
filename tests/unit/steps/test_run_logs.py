from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

from trainops.gcp.logs import LogLine, Logs
from trainops.steps.run_logs import LATE, LogFollower

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
NO_LOGS: Any = None


def line(seconds: float) -> LogLine:
    return LogLine(NOW + timedelta(seconds=seconds), "1", "workerpool0-0", "INFO", f"at {seconds:g}", f"id-{seconds:g}")


def test_a_reading_that_begins_before_what_was_told_long_ago_tells_nothing_twice() -> None:
    follower = LogFollower(cast("Logs", NO_LOGS))
    seconds = [float(number) for number in range(0, 200, 10)]
    told = [text for until in seconds for text in follower.take([line(one) for one in seconds if one <= until])]
    assert told == [f"[workerpool0-0] at {one:g}" for one in seconds]


def test_a_line_that_comes_late_is_told_when_it_comes() -> None:
    follower = LogFollower(cast("Logs", NO_LOGS))
    follower.take([line(0), line(100)])
    late = 100 - LATE.total_seconds()
    assert follower.take([line(late), line(100)]) == [f"[workerpool0-0] at {late:g}"]
