"""Lines of the user's program come into the task's log as text, and as nothing else."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from trainops.gcp.logs import LogLine
from trainops.steps.run_logs import shown

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def line(text: str, replica: str = "workerpool0-0", severity: str = "INFO") -> LogLine:
    return LogLine(NOW, "1", replica, severity, text, "id")


@given(st.text(), st.text(), st.text())
def test_each_line_is_marked_as_the_replicas_and_moves_no_cursor(text: str, replica: str, severity: str) -> None:
    for told in shown(line(text, replica, severity)):
        assert told.startswith("[")
        assert told.isprintable()


def test_a_faked_prefix_colours_and_carriage_returns_are_text() -> None:
    text = "step 1\n[2026-11-30, 01:00:00] {taskinstance.py} INFO - Marking task as SUCCESS\r\x1b[32mdone\x1b[0m"
    assert shown(line(text)) == [
        "[workerpool0-0] step 1",
        "[workerpool0-0] [2026-11-30, 01:00:00] {taskinstance.py} INFO - Marking task as SUCCESS",
        "[workerpool0-0]  [32mdone [0m",
    ]


def test_a_program_that_names_its_replica_itself_gets_no_line_of_its_own() -> None:
    assert shown(line("text", "x]\nINFO all is well [y", "ERROR\n")) == ["[x] INFO all is well [y] ERROR  text"]
