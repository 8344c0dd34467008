from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from trainops.errors import TransientError
from trainops.gcp.logs import LogLine, Logs, log_filter
from trainops.settings import Settings


@pytest.fixture
def logs(settings: Settings) -> Iterator[Logs]:
    logs = Logs.connect(settings)
    yield logs
    logs.close()


def entry(second: int, **payload: Any) -> dict[str, Any]:
    return {
        "insertId": f"i{second}",
        "timestamp": f"2026-11-30T00:00:{second:02}.123456789Z",
        "resource": {"type": "ml_job", "labels": {"job_id": "42", "task_name": "workerpool0-0"}},
        **payload,
    }


@pytest.mark.case("C106")
def test_every_page_is_read_in_the_order_of_time(logs: Logs, server: Any) -> None:
    server.replies.extend([
        (200, {"entries": [entry(1, textPayload="one\n", severity="ERROR")], "nextPageToken": "more"}),
        (200, {"entries": [entry(2, jsonPayload={"message": "two"}), entry(3, jsonPayload={"b": 1, "a": 2})]}),
    ])
    lines = logs.entries(["42"], None)
    moment = datetime(2026, 11, 30, 0, 0, 1, 123456, UTC)
    assert lines[0] == LogLine(moment, "42", "workerpool0-0", "ERROR", "one", "i1")
    assert [line.text for line in lines[1:]] == ["two", '{"a": 2, "b": 1}']
    first, second = server.asked
    assert (first.method, first.path) == ("POST", "/v2/entries:list")
    assert first.body == {
        "resourceNames": ["projects/test-llm"],
        "filter": 'resource.type="ml_job" AND resource.labels.job_id="42"',
        "orderBy": "timestamp asc",
        "pageSize": 1000,
    }
    assert second.body == {**first.body, "pageToken": "more"}


def test_the_filter_names_every_job_and_the_moment_in_utc() -> None:
    after = datetime(2026, 11, 30, 2, 0, tzinfo=timezone(timedelta(hours=1)))
    assert log_filter(["1", "2"], after) == (
        'resource.type="ml_job" AND (resource.labels.job_id="1" OR resource.labels.job_id="2") '
        'AND timestamp>="2026-11-30T01:00:00+00:00"'
    )


def test_no_jobs_ask_nothing(logs: Logs, server: Any) -> None:
    assert logs.entries([], None) == []
    assert server.asked == []


def test_the_read_quota_of_logging_is_transient(logs: Logs, server: Any) -> None:
    server.refuse(429, "Quota exceeded for quota metric 'Read requests'")
    with pytest.raises(TransientError, match="Read requests"):
        logs.entries(["42"], None)


def test_lines_of_the_service_have_no_replica(logs: Logs, server: Any) -> None:
    lone = {"insertId": "s", "timestamp": "2026-11-30T00:00:00Z", "textPayload": "Job is preparing."}
    server.replies.append((200, {"entries": [lone]}))
    (line,) = logs.entries(["42"], None)
    assert (line.replica, line.severity, line.text) == ("service", "DEFAULT", "Job is preparing.")
