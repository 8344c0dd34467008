"""On which of its candidates a generation's next attempt may run, and when: pure, from what the record tells.

The order is the user's. Where Google lacked machines or quota, that candidate pauses, the longer the more often in a
row, and the others go on. What says nothing about the place (an internal error, a lost Spot machine) pauses them all.
Spot machines are given up after so many losses, or from a moment on; what the record keeps for then opens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainops.policy.record import Attempt, Candidate, Record, Verdict

BACK_OFF = timedelta(seconds=30)
LONGEST_BACK_OFF = timedelta(minutes=15)
"""Waiting before the next attempt after Google lacked machines or quota: doubled each time in a row."""

LACKING = frozenset({Verdict.STOCKOUT, Verdict.QUOTA})
"""Ends that tell of one candidate: what it needs is not there."""

BACKING_OFF = LACKING | {Verdict.INTERNAL, Verdict.SPOT_LOST}


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """When the next attempt may begin on a candidate."""

    number: int
    """Which of the record's candidates."""
    candidate: Candidate
    not_before: datetime | None = None
    not_after: datetime | None = None

    def is_open(self, now: datetime) -> bool:
        """True when an attempt may begin now."""
        return not self.is_past(now) and (self.not_before is None or now >= self.not_before)

    def is_past(self, now: datetime) -> bool:
        """True when no attempt may begin any more."""
        return self.not_after is not None and now >= self.not_after


def windows(record: Record) -> tuple[Window, ...]:
    """The candidates that may still be taken, in the user's order; never none."""
    every = [_window(record, number, item) for number, item in enumerate(record.candidates)]
    found = tuple(item for item in every if item is not None)
    return found or tuple(
        Window(number=number, candidate=item, not_before=pause_until(record, number))
        for number, item in enumerate(record.candidates)
    )


def next_start(record: Record, now: datetime) -> datetime | None:
    """When the next attempt may begin at the earliest; None, or a moment that has passed, when that is at once."""
    ahead = [item for item in windows(record) if not item.is_past(now)]
    moments = [item.not_before for item in ahead]
    return None if None in moments else min((moment for moment in moments if moment is not None), default=None)


def candidate_to_start(record: Record, now: datetime, gpus: Mapping[str, int] | None = None) -> int | None:
    """The candidate on which the next attempt begins; None when no candidate asks for what is held.

    :param gpus: what it holds, by pool; None for a job without GPUs.
    """
    found = [item for item in windows(record) if gpus is None or item.candidate.gpus == gpus]
    open_ones = [item for item in found if item.is_open(now)]
    return next((item.number for item in (*open_ones, *found)), None)


def pause_until(record: Record, number: int) -> datetime | None:
    """When the pause of a candidate ends, after attempts in a row that ended for want of machines, quota or luck."""
    in_a_row: list[Attempt] = []
    for attempt in reversed(record.attempts):
        if attempt.verdict not in BACKING_OFF:
            break
        if attempt.candidate == number or attempt.verdict not in LACKING:
            in_a_row.append(attempt)
    last = in_a_row[0].ended_at if in_a_row else None
    return None if last is None else last + min(LONGEST_BACK_OFF, BACK_OFF * 2 ** min(len(in_a_row) - 1, 10))


def spot_is_lost(record: Record) -> bool:
    """True when so many Spot machines were lost that no more are taken."""
    losses = sum(item.verdict is Verdict.SPOT_LOST for item in record.attempts)
    return record.limits.max_spot_losses is not None and losses >= record.limits.max_spot_losses


def _window(record: Record, number: int, candidate: Candidate) -> Window | None:
    pause, spot_until, lost = pause_until(record, number), record.limits.spot_until, spot_is_lost(record)
    if candidate.provisioning == "spot":
        return None if lost else Window(number=number, candidate=candidate, not_before=pause, not_after=spot_until)
    if not candidate.after_spot or lost:
        return Window(number=number, candidate=candidate, not_before=pause)
    if spot_until is None:
        return None
    return Window(number=number, candidate=candidate, not_before=max(pause or spot_until, spot_until))
