"""The replicas' lines and the trainer's progress, told once and in order while somebody waits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from trainops.errors import ServiceError
from trainops.gcp.logs import LogLine, Logs
from trainops.gcp.storage import Storage

LATE = timedelta(seconds=60)
"""Lines may come so much later than others with a later time; until then they are asked for again."""

MOST_SEEN = 5000
"""Ids of lines that are kept to know them again; a job that prints more within `LATE` is asked for a shorter time."""


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
        fresh = {_identity(line): line for line in lines if _identity(line) not in self._seen}
        if fresh:
            self._seen |= {key: line.time.timestamp() for key, line in fresh.items()}
            self.pass_by(max(line.time for line in fresh.values()) - LATE)
        return [text for line in sorted(fresh.values(), key=lambda line: line.time) for text in shown(line)]

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


def progress_line(storage: Storage, folder: str) -> str | None:
    """One line on how far the training is, from its metrics; None before the first step."""
    found = storage.read_bytes(f"{folder}/metrics.jsonl")
    lines = found.data.decode(errors="replace").splitlines() if found is not None else []
    for line in reversed(lines):
        try:
            point = json.loads(line)
        except ValueError:
            continue  # the trainer was killed while it wrote; the line before is whole
        if isinstance(point, dict) and "loss" in point and "steps" in point:
            return _told(point)
    return None


def job_number(job_name: str) -> str:
    """The number at the end of a job's name: what its log entries carry."""
    return job_name.rsplit("/", 1)[-1]


def unreadable(error: ServiceError) -> str:
    """The line that stands for lines which cannot be read."""
    return f"(the replicas' log cannot be read now: {error})"


def shown(line: LogLine) -> list[str]:
    """A replica's entry for the task log, a line for each of its lines; control characters are not passed on."""
    severity = "" if line.severity in {"INFO", "DEFAULT", ""} else f" {line.severity}"
    texts = ["".join(char if char.isprintable() else " " for char in text) for text in line.text.rstrip().splitlines()]
    return [f"[{line.replica}]{severity} {text}" for text in texts or [""]]


def _identity(line: LogLine) -> str:
    return line.insert_id or f"{line.time.isoformat()} {line.replica} {line.text}"


def _told(point: dict[str, Any]) -> str:
    parts = [f"step {point['step']}/{point['steps']}", f"loss {point['loss']:.3f}"]
    if point.get("tokens_per_second"):
        parts.append(f"{point['tokens_per_second']:,.0f} tokens/s")
    if point.get("remaining_seconds") is not None:
        minutes, seconds = divmod(int(point["remaining_seconds"]), 60)
        parts.append(f"about {minutes}:{seconds:02d} left")
    return ", ".join(parts)
