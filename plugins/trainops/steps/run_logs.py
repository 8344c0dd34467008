"""The replicas' lines and the trainer's progress, told once and in order while somebody waits."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from trainops.errors import ServiceError, TrainopsError
from trainops.gcp.logs import LogLine, Logs
from trainops.gcp.storage import Storage

LATE = timedelta(seconds=60)
"""Lines may come so much later than others with a later time; until then they are asked for again."""

MOST_SEEN = 5000
"""Ids of lines that are kept to know them again; a job that prints more within `LATE` is asked for a shorter time."""

TAIL_BYTES = 16384
"""Bytes read from the end of a run's metrics; a line of them has a few hundred."""


class LogFollower:
    """New lines of one job after another.

    :param position: where an earlier follower stopped (`position` of it), so that nothing is told twice.
    """

    def __init__(self, logs: Logs, position: dict[str, Any] | None = None) -> None:
        self.logs = logs
        self.after: datetime | None = None
        self._seen: dict[str, float] = {}
        self.go_on_from(position)

    def go_on_from(self, position: dict[str, Any] | None) -> None:
        """Continue where another follower stopped."""
        if position:
            self.after = datetime.fromisoformat(position["after"]) if position.get("after") else None
            self._seen = dict(position.get("seen", {}))

    @property
    def position(self) -> dict[str, Any]:
        """Where this follower stands, as JSON: what is to be asked for, and the lines of it that were told."""
        return {"after": self.after.isoformat() if self.after else None, "seen": dict(self._seen)}

    def new_lines(self, job_name: str) -> list[str]:
        """Lines that came since the last call; none, with the reason as a line, when logs cannot be read now."""
        try:
            return self.take(self.logs.entries([job_number(job_name)], self.after))
        except ServiceError as error:
            return [unreadable(error)]

    def take(self, lines: Sequence[LogLine]) -> list[str]:
        """Keep the lines of the job that were not told yet, as text, oldest first."""
        fresh = {_identity(line): line for line in lines if self._is_new(line)}
        if fresh:
            self._seen |= {key: line.time.timestamp() for key, line in fresh.items()}
            self.pass_by(max(line.time for line in fresh.values()) - LATE)
        return [text for line in sorted(fresh.values(), key=lambda line: line.time) for text in shown(line)]

    def _is_new(self, line: LogLine) -> bool:
        """False also of lines that were passed by: a reading for several jobs begins where the last of them stands."""
        return _identity(line) not in self._seen and (self.after is None or line.time >= self.after)

    def pass_by(self, moment: datetime) -> None:
        """Ask for nothing before `moment` any more."""
        if len(self._seen) > MOST_SEEN:
            newest = sorted(self._seen.values())[-MOST_SEEN]
            moment = max(moment, datetime.fromtimestamp(newest, moment.tzinfo))
        if self.after is None or moment > self.after:
            self.after = moment
            self._seen = {key: time for key, time in self._seen.items() if time >= moment.timestamp()}

    def last_lines(self, job_name: str, count: int = 20) -> list[str]:
        """The job's last lines, whatever was told before."""
        try:
            lines = self.logs.entries([job_number(job_name)], None)[-count:]
        except ServiceError as error:
            return [unreadable(error)]
        return [text for line in lines for text in shown(line)][-count:]


@dataclass(frozen=True)
class Progress:
    """How far a training is: a line that tells, and the seconds that are left by its own report."""

    line: str
    remaining_seconds: float | None


def read_progress(storage: Storage, folder: str) -> Progress | None:
    """How far the training is, from its metrics; None before the first step."""
    tail = storage.read_tail(f"{folder}/metrics.jsonl", TAIL_BYTES)
    lines = tail.decode(errors="replace").splitlines() if tail is not None else []
    for line in reversed(lines):
        try:
            point = json.loads(line)
        except ValueError:
            continue  # the trainer was killed while it wrote, or the tail begins in it; another line is whole
        told = _told(point) if isinstance(point, dict) else None
        if told is not None:
            return Progress(told, _remaining(point))
    return None


def job_number(job_name: str) -> str:
    """The number at the end of a job's name: what its log entries carry."""
    return job_name.rsplit("/", 1)[-1]


def unreadable(error: TrainopsError) -> str:
    """The line that stands for lines which cannot be read."""
    return f"(the replicas' log cannot be read now: {error})"


def shown(line: LogLine) -> list[str]:
    """A replica's entry for the task log, a line for each of its lines; control characters are not passed on."""
    severity = "" if line.severity in {"INFO", "DEFAULT", ""} else f" {line.severity}"
    prefix = _printable(f"[{line.replica}]{severity}")  # a program that writes to Cloud Logging itself chooses both
    return [f"{prefix} {_printable(text)}" for text in line.text.rstrip().splitlines() or [""]]


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


def _identity(line: LogLine) -> str:
    return line.insert_id or f"{line.time.isoformat()} {line.replica} {line.text}"


def _told(point: dict[str, Any]) -> str | None:
    """The point as a line; None when it is no point, or its figures are no numbers."""
    step, steps, loss = (_number(point.get(key)) for key in ("step", "steps", "loss"))
    if step is None or steps is None or loss is None:
        return None
    parts = [f"step {step:.0f}/{steps:.0f}", f"loss {loss:.3f}"]
    rate, remaining = _number(point.get("tokens_per_second")), _remaining(point)
    if rate:
        parts.append(f"{rate:,.0f} tokens/s")
    if remaining is not None:
        minutes, seconds = divmod(int(remaining), 60)
        parts.append(f"about {minutes}:{seconds:02d} left")
    return ", ".join(parts)


def _remaining(point: dict[str, Any]) -> float | None:
    remaining = _number(point.get("remaining_seconds"))
    return remaining if remaining is not None and math.isfinite(remaining) and remaining >= 0 else None


def _number(value: object) -> float | None:
    """A number that can be told; the metrics are written by whatever the user trains with."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return None if abs(value) >= 1e18 else float(value)  # a loss may be nan
