"""The replicas' lines and the trainer's progress, told once and in order while somebody waits."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from trainops.errors import ServiceError
from trainops.gcp.logs import LogLine, Logs
from trainops.gcp.storage import Storage


class LogFollower:
    """New lines of one job after another.

    :param position: where an earlier follower stopped (`position` of it), so that nothing is told twice.
    """

    def __init__(self, logs: Logs, position: dict[str, Any] | None = None) -> None:
        self.logs = logs
        self.after: datetime | None = None
        self.seen: set[str] = set()
        if position:
            self.after = datetime.fromisoformat(position["after"]) if position.get("after") else None
            self.seen = set(position.get("seen", []))

    @property
    def position(self) -> dict[str, Any]:
        """Where this follower stands, as JSON."""
        return {"after": self.after.isoformat() if self.after else None, "seen": sorted(self.seen)}

    def new_lines(self, job_name: str) -> list[str]:
        """Lines that came since the last call; none, with the reason as a line, when logs cannot be read now."""
        try:
            lines = self.logs.entries([job_number(job_name)], self.after)
        except ServiceError as error:
            return [f"(the replicas' log cannot be read now: {error})"]
        fresh = [line for line in lines if line.insert_id not in self.seen]
        if fresh:
            newest = fresh[-1].time
            # Lines of the newest instant may still come: ask from there again, and know those already told.
            self.seen = {line.insert_id for line in lines if line.time == newest} | (
                self.seen if self.after == newest else set()
            )
            self.after = newest
        return [text for line in fresh for text in shown(line)]

    def last_lines(self, job_name: str, count: int = 20) -> list[str]:
        """The job's last lines, whatever was told before."""
        try:
            lines = self.logs.entries([job_number(job_name)], None)[-count:]
        except ServiceError as error:
            return [f"(the replicas' log cannot be read now: {error})"]
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


def shown(line: LogLine) -> list[str]:
    """A replica's entry for the task log, a line for each of its lines; control characters are not passed on."""
    severity = "" if line.severity in {"INFO", "DEFAULT", ""} else f" {line.severity}"
    texts = ["".join(char if char.isprintable() else " " for char in text) for text in line.text.rstrip().splitlines()]
    return [f"[{line.replica}]{severity} {text}" for text in texts or [""]]


def _told(point: dict[str, Any]) -> str:
    parts = [f"step {point['step']}/{point['steps']}", f"loss {point['loss']:.3f}"]
    if point.get("tokens_per_second"):
        parts.append(f"{point['tokens_per_second']:,.0f} tokens/s")
    if point.get("remaining_seconds") is not None:
        minutes, seconds = divmod(int(point["remaining_seconds"]), 60)
        parts.append(f"about {minutes}:{seconds:02d} left")
    return ", ".join(parts)
