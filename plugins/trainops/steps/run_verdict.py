"""What a closed record means for the task that waits: a result, or the error of its kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainops.errors import DeadlinePassed, JobCancelled, JobFailed, RunError
from trainops.policy.failure import EXIT_NEVER
from trainops.policy.record import Record, Verdict


def summary(record: Record) -> dict[str, Any]:
    """A small dict for XCom: where everything is, and how it went."""
    attempt = record.attempt
    return {
        "run_key": record.run_key,
        "job_key": record.job_key,
        "generation": record.generation,
        "folder": record.folder,
        "region": record.region,
        "job_name": attempt.job_name if attempt else None,
        "attempts": len(record.attempts),
        "verdict": record.verdict.value if record.verdict else None,
    }


def error_of(record: Record, last_lines: Sequence[str] = ()) -> RunError | None:
    """The error that the verdict stands for; None when the run succeeded."""
    attempt = record.attempt
    name = attempt.job_name if attempt is not None else None
    text = f"{record.job_key}: {record.message}" + (f" ({name})" if name and name not in record.message else "")
    match record.verdict:
        case Verdict.SUCCEEDED | None:
            return None
        case Verdict.CANCELLED:
            return JobCancelled(text)
        case Verdict.DEADLINE:
            return DeadlinePassed(text)
        case _:
            tail = "\n".join(("", "last log lines:", *last_lines)) if last_lines else ""
            return JobFailed(text + tail, exit_code_of_job=attempt.exit_code if attempt else None)


def retry_helps(record: Record) -> bool:
    """False when another try of the task could only fail the same way."""
    if record.verdict is not Verdict.FAILED:
        return False
    attempt = record.attempt
    return attempt is not None and attempt.exit_code != EXIT_NEVER and attempt.verdict is Verdict.FAILED
