"""Reports of users who saw the lines of their jobs twice, out of order, or without what they meant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from trainops.gcp.logs import LogLine, Logs
from trainops.steps.run_logs import LogFollower, shown

START = datetime(2026, 11, 30, tzinfo=UTC)


def line(second: int, text: str, severity: str = "INFO") -> LogLine:
    return LogLine(START + timedelta(seconds=second), "42", "workerpool0-0", severity, text, f"i{second}")


@pytest.mark.case("C106")
@pytest.mark.parametrize(
    ("severity", "told"), [("INFO", "loss 3.1"), ("DEFAULT", "loss 3.1"), ("ERROR", "ERROR loss 3.1")]
)
def test_a_line_keeps_its_text_and_a_severity_that_says_something(severity: str, told: str) -> None:
    assert shown(line(1, "loss 3.1", severity)) == [f"[workerpool0-0] {told}"]


@pytest.mark.case("C106")
def test_lines_that_come_late_or_again_are_told_once_and_in_the_order_of_their_time() -> None:
    follower = LogFollower(cast("Logs", None))  # it is given its lines
    first: list[Any] = [line(3, "three"), line(1, "one")]
    assert follower.take(first) == ["[workerpool0-0] one", "[workerpool0-0] three"]
    assert follower.take([*first, line(2, "two"), line(4, "four")]) == ["[workerpool0-0] two", "[workerpool0-0] four"]
    assert follower.take(first) == []
