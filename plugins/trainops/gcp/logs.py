"""What the replicas of training jobs print, read from Cloud Logging."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from trainops.gcp.session import Json, Session

if TYPE_CHECKING:
    from trainops.settings import Settings

PAGE_SIZE = 1000
"""Entries a page: the most that Cloud Logging gives."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a replica; `replica` is `workerpool0-0`, or `service` for Vertex's own lines."""

    time: datetime
    job_id: str
    replica: str
    severity: str
    text: str
    insert_id: str


class Logs:
    """Reads the lines of jobs."""

    def __init__(self, session: Session, settings: Settings) -> None:
        self._session = session
        self._settings = settings

    @classmethod
    def connect(cls, settings: Settings, credentials: Any = None) -> Logs:
        """Return a client.

        :param credentials: of the Airflow connection; without them the application default ones are used.
        :raises AccessError: no credentials were found.
        """
        return cls(Session.connect(settings, credentials), settings)

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def entries(self, job_ids: Sequence[str], after: datetime | None = None) -> list[LogLine]:
        """Return the lines of all these jobs, of all pages, oldest first.

        Lines of the very moment `after` are among them, since several lines can share a moment: a reader that asks
        again with the time of its last line knows by `insert_id` which ones it has.

        :param job_ids: the numbers at the end of the jobs' names.
        """
        if not job_ids:
            return []
        query = {
            "resourceNames": [f"projects/{self._settings.project}"],
            "filter": log_filter(job_ids, after),
            "orderBy": "timestamp asc",
            "pageSize": PAGE_SIZE,
        }
        url = f"{self._settings.logging_endpoint()}/v2/entries:list"
        return [_line(entry) for entry in self._session.pages("POST", url, "entries", query)]


def log_filter(job_ids: Sequence[str], after: datetime | None) -> str:
    """Return the filter, in Cloud Logging's query language, of the lines of these jobs from `after` on."""
    jobs = " OR ".join(f"resource.labels.job_id={json.dumps(job)}" for job in job_ids)
    clauses = ['resource.type="ml_job"', f"({jobs})" if len(job_ids) > 1 else jobs]
    if after is not None:
        clauses.append(f'timestamp>="{after.astimezone(UTC).isoformat()}"')
    return " AND ".join(clauses)


def _line(entry: Json) -> LogLine:
    labels = entry.get("resource", {}).get("labels", {})
    return LogLine(
        time=datetime.fromisoformat(entry["timestamp"]),
        job_id=labels.get("job_id", ""),
        replica=labels.get("task_name", "service"),
        severity=entry.get("severity", "DEFAULT"),
        text=_text(entry),
        insert_id=entry.get("insertId", ""),
    )


def _text(entry: Json) -> str:
    if "textPayload" in entry:
        return str(entry["textPayload"]).rstrip("\n")
    payload = entry.get("jsonPayload", entry.get("protoPayload", {}))
    message = payload.get("message") if isinstance(payload, dict) else None
    return str(message).rstrip("\n") if message is not None else json.dumps(payload, sort_keys=True)
