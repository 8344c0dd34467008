"""Every way in which a job fails, from the stand-in's words to the error that the task raises."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from airflow.sdk.exceptions import AirflowFailException
from tests.integration.run.one_job import EXIT, SLOW, OneJob

from trainops import errors
from trainops.policy import candidates
from trainops.policy.record import Verdict
from trainops.steps.run_verdict import retry_helps


def test_the_users_own_failure_is_told_with_exit_code_and_last_lines_and_may_be_retried(job: OneJob) -> None:
    job.begin(EXIT.format(3))
    job.until_attempt_ends()
    error = job.raised
    assert type(error) is errors.JobFailed
    assert error.exit_code_of_job == 3
    assert "last log lines:" in str(error)
    assert "the last thing it said" in str(error).split("last log lines:")[1]
    assert "a retry resumes from the last checkpoint" in str(error)


def test_a_trainer_that_says_never_fails_the_task_without_a_retry(job: OneJob) -> None:
    job.begin(EXIT.format(2))
    job.until_attempt_ends()
    assert isinstance(job.raised, AirflowFailException)
    assert str(job.raised).startswith("JobFailed: ")
    assert "the trainer says that a retry cannot help" in str(job.raised)


def never(job: OneJob, name: str, *words: str) -> None:
    """The task fails at once with the error, and a retry by hand submits nothing."""
    error = job.raised
    assert isinstance(error, AirflowFailException)
    assert str(error).startswith(f"{name}: ")
    assert all(word in str(error) for word in words), str(error)
    attempts = len(job.record.attempts)
    job.begin(number=2)
    job.run.advance()
    assert len(job.record.attempts) == attempts
    assert not retry_helps(job.record)


def test_out_of_memory_is_not_paid_for_again(job: OneJob, vertex_url: str) -> None:
    job.begin(SLOW)
    job.until_running()
    name = job.record.attempts[0].job_name
    httpx.post(f"{vertex_url}/faults", json={"kind": "kill_replica", "job": name}).raise_for_status()
    job.until_attempt_ends()
    never(job, "OutOfMemory", "ran out of memory", "take a larger machine")


def test_an_image_that_cannot_be_pulled_names_the_role_that_is_missing(job: OneJob) -> None:
    job.faults("image_pull")
    job.begin()
    job.until_attempt_ends()
    never(job, "ImagePullFailed", "Artifact Registry repository", "roles/artifactregistry.reader")


def test_a_job_whose_account_may_not_read_names_account_and_object(job: OneJob) -> None:
    job.faults("permission")
    job.begin()
    job.until_attempt_ends()
    never(job, "PermissionMissing", "gcp-sa-aiplatform-cc", "storage.objects.get", "grant what the message names")


def test_an_account_that_may_not_be_acted_as_is_a_missing_permission_though_vertex_calls_it_400(job: OneJob) -> None:
    text = "You do not have permission to act as service_account: x@p.iam.gserviceaccount.com. (or it may not exist)."
    job.faults("answer", method="customJobs.create", status=400, message=text)
    job.begin()
    job.until_attempt_ends()
    never(job, "PermissionMissing", text, "grant what the message names")
    assert job.record.verdict is Verdict.FAILED


def test_a_caller_who_may_not_create_is_a_missing_permission(job: OneJob) -> None:
    job.faults("answer", method="customJobs.create", status=403, message="The caller does not have permission")
    job.begin()
    job.until_attempt_ends()
    never(job, "PermissionMissing", "The caller does not have permission", "grant what the message names")


def test_a_bad_request_names_the_field(job: OneJob) -> None:
    text = "List of found errors:\t1.Field: job_spec.scheduling; Message: is wrong.\t"
    job.faults("answer", method="customJobs.create", status=400, message=text)
    job.begin()
    job.until_attempt_ends()
    never(job, "JobRefused", "job_spec.scheduling", "correct the fields")


def test_words_that_nobody_knows_are_shown_as_the_jobs_own_failure(job: OneJob) -> None:
    job.faults("job_error", code=9, message="The moon is in the wrong house.")
    job.begin()
    job.until_attempt_ends()
    assert type(job.raised) is errors.JobFailed
    assert "The moon is in the wrong house." in str(job.raised)


RESUMED = [
    ("internal", {}, Verdict.INTERNAL, errors.InternalFailure, "Internal error occurred"),
    ("stockout", {}, Verdict.STOCKOUT, errors.Stockout, "Resources are insufficient"),
    (
        "answer", {"method": "customJobs.create", "status": 429, "message": "quota metrics exceed quota limits: x"},
        Verdict.QUOTA, errors.QuotaExceeded, "raise the quota",
    ),
]  # fmt: skip


@pytest.mark.case("C080")
@pytest.mark.case("C081")
@pytest.mark.case("C082")
@pytest.mark.parametrize(("kind", "details", "verdict", "error", "words"), RESUMED)
def test_what_google_lacks_is_waited_for_and_the_next_attempt_follows_by_itself(
    job: OneJob, vertex_url: str, monkeypatch: pytest.MonkeyPatch, kind: str, details: dict[str, Any],
    verdict: Verdict, error: type[errors.RunError], words: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(candidates, "BACK_OFF", candidates.BACK_OFF / 100)
    job.faults(kind, **details)
    job.begin()
    job.until_attempt_ends()
    assert job.record.attempts[0].verdict is verdict
    assert words in job.record.attempts[0].message
    assert job.record.verdict is None
    httpx.delete(f"{vertex_url}/faults").raise_for_status()
    job.until(lambda: job.record.verdict is not None)
    assert [attempt.verdict for attempt in job.record.attempts] == [verdict, Verdict.SUCCEEDED]


@pytest.mark.case("C027")
@pytest.mark.parametrize(("kind", "details", "verdict", "error", "words"), RESUMED)
def test_after_the_last_attempt_the_error_is_that_of_its_end(
    job: OneJob, kind: str, details: dict[str, Any], verdict: Verdict, error: type[errors.RunError], words: str
) -> None:
    job.faults(kind, **details)
    job.begin()
    last = job.record.limits.model_copy(update={"max_attempts": 1})
    job.run.store.change(lambda record: record and record.model_copy(update={"limits": last}))
    job.until(lambda: job.record.verdict is not None)
    never(job, error.__name__, words, "1 attempts are used up")


def test_a_spot_job_whose_machines_are_taken_resumes_as_the_next_attempt(
    job: OneJob, vertex_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "BACK_OFF", candidates.BACK_OFF / 100)
    job.begin(SLOW)
    job.run.store.change(lambda record: record and record.model_copy(update={"provisioning": "spot"}))
    job.until_running()
    name = job.record.attempts[0].job_name
    taken = {"kind": "spot_loss", "job": name, "final": True}
    httpx.post(f"{vertex_url}/faults", json=taken).raise_for_status()
    job.until(lambda: len(job.record.attempts) == 2 and job.record.attempts[1].job_name is not None)
    assert job.record.attempts[0].verdict is Verdict.SPOT_LOST
    job.run.cancel("the test is over")
    job.until(lambda: job.record.verdict is not None)
