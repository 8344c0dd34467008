"""A job of Vertex's JSON, as the lifecycle sees it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from trainops.policy.lifecycle import Job


def read_job(body: dict[str, Any]) -> Job:
    """Return what a job of Vertex's JSON tells; what it leaves out is as of one that has just been created."""
    labels = body.get("labels", {})
    error = body.get("error", {})
    return Job(
        name=body["name"],
        state=str(body.get("state", "JOB_STATE_UNSPECIFIED")),
        create_time=body.get("createTime", ""),
        generation=_number(labels.get("generation")),
        attempt=_number(labels.get("attempt")),
        error_code=int(error.get("code", 0)),
        error_message=error.get("message", ""),
        started_at=_moment(body.get("startTime")),
        ended_at=_moment(body.get("endTime")),
    )


def _moment(text: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(text or "")
    except ValueError:  # it only tells what was paid
        return None
    return None if found.tzinfo is None else found


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() else 0
