"""Times as Google writes them: RFC 3339 in UTC with microseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def now() -> str:
    """Return the time, such as 2026-11-30T02:30:00.123456Z."""
    return from_seconds(datetime.now(UTC).timestamp())


def from_seconds(seconds: float) -> str:
    """Return the RFC 3339 form of seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moved(text: str, seconds: float) -> str:
    """Return a time that this module wrote, so many seconds later."""
    return (parse(text) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse(text: str) -> datetime:
    """Return the moment that `text` names, in UTC when it names no zone; ValueError when it is none."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
