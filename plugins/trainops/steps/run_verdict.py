"""What a closed record means for the task that waits: a result, or the error of its kind."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from trainops.errors import JobFailed, RunError
from trainops.policy.failure import rule_of
from trainops.policy.record import Record, Verdict
from trainops.policy.spending import gpu_hours, spent_usd


def summary(record: Record) -> dict[str, Any]:
    """A small dict for XCom: where everything is, and how it went."""
    attempt = record.attempt
    now = datetime.now(UTC)
    return {
        "run_key": record.run_key,
        "job_key": record.job_key,
        "generation": record.generation,
        "folder": record.folder,
        "region": record.machines.region,
        "job_name": attempt.job_name if attempt else None,
        "attempts": len(record.attempts),
        "gpu_hours": round(gpu_hours(record, now), 4),
        "usd": round(spent_usd(record, now), 4),
        "verdict": record.verdict.value if record.verdict else None,
    }


def error_of(record: Record, last_lines: Sequence[str] = ()) -> RunError | None:
    """The error that the verdict stands for; None when the run succeeded.

    :param last_lines: of the job's log, for an error of the user's code.
    """
    kind = _kind(record)
    if kind is None:
        return None
    attempt = record.attempt
    name = attempt.job_name if attempt is not None else None
    text = f"{record.job_key}: {record.message}" + (f" ({name})" if name and name not in record.message else "")
    error = rule_of(kind).error
    if not issubclass(error, JobFailed):
        return error(text)
    tail = "\n".join(("", "last log lines:", *last_lines)) if last_lines else ""
    return error(text + tail, exit_code_of_job=attempt.exit_code if attempt else None)


def retry_helps(record: Record) -> bool:
    """False when another try of the task could only fail the same way."""
    if record.verdict is not Verdict.FAILED or record.attempt is None or record.attempt.verdict is not Verdict.FAILED:
        return False
    return rule_of(Verdict.FAILED, record.attempt.exit_code).retry == "Airflow"


def _kind(record: Record) -> Verdict | None:
    """How it ended; a failed generation ended as its last attempt did, such as after too many stockouts in a row."""
    if record.verdict in {None, Verdict.SUCCEEDED}:
        return None
    attempt = record.attempt
    if record.verdict is Verdict.FAILED and attempt is not None and attempt.verdict is not None:
        return attempt.verdict
    return record.verdict
