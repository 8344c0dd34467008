"""The queue's time is the server's: it goes on while nobody writes, and is never ahead."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from trainops.steps.gpu_queue.server_clock import THE_BEGINNING, ServerClock

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
STEPS = st.lists(st.tuples(st.floats(0, 1000), st.booleans(), st.floats(0, 100)), max_size=30)


def test_before_anything_was_seen_it_is_the_beginning_of_time() -> None:
    assert ServerClock().now(None) == THE_BEGINNING


def test_while_nobody_writes_it_goes_on() -> None:
    seconds = iter([10.0, 11.0, 75.0, 76.0])
    clock = ServerClock(lambda: next(seconds))
    assert clock.now(NOON) == NOON
    assert clock.now(NOON) == NOON + timedelta(seconds=1)
    assert clock.now(None) == NOON + timedelta(seconds=65)
    assert clock.now(NOON + timedelta(minutes=5)) == NOON + timedelta(minutes=5)


@given(STEPS)
def test_it_is_never_ahead_of_the_server_and_never_goes_back(steps: list[tuple[float, bool, float]]) -> None:
    """Each step: seconds that pass, whether somebody writes then, and how long after the write it is read."""
    passed, stamp, told = 0.0, None, THE_BEGINNING
    clock = ServerClock(lambda: passed)
    for seconds, writes, late in steps:
        passed += seconds
        if writes:
            stamp = NOON + timedelta(seconds=passed)
        passed += late
        now = clock.now(stamp)
        assert told <= now
        assert now <= NOON + timedelta(seconds=passed + 1e-3)
        told = now
