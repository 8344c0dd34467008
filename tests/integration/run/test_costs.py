"""What a job costs stands in its record, and a run that reaches its cap is ended."""

from __future__ import annotations

import pytest
from airflow.sdk.exceptions import AirflowFailException
from tests.integration.run.one_job import SLOW, OneJob

from trainops.policy.record import Verdict
from trainops.steps.run_verdict import summary

TWO_SECONDS = "import time; time.sleep(2)"


def test_the_record_tells_gpu_hours_and_money_from_googles_own_times(job: OneJob) -> None:
    job.begin(TWO_SECONDS, gpus=2)
    job.until(lambda: job.record.verdict is not None)
    (attempt,) = job.record.attempts
    assert attempt.started_at is not None
    assert attempt.ran_seconds is not None
    assert attempt.usd_per_hour is not None
    assert 2 <= attempt.ran_seconds < 60
    assert attempt.usd == pytest.approx(attempt.ran_seconds / 3600 * attempt.usd_per_hour)
    told = summary(job.record)
    assert told["gpu_hours"] == pytest.approx(2 * attempt.ran_seconds / 3600, abs=1e-4)
    assert told["usd"] == pytest.approx(attempt.usd, abs=1e-4)


def test_a_job_that_never_got_machines_cost_nothing(job: OneJob) -> None:
    job.faults("stockout")
    job.begin()
    job.until_attempt_ends()
    assert (job.record.attempts[0].ran_seconds, job.record.attempts[0].usd) == (0.0, 0.0)


def test_a_run_that_reaches_its_cap_is_ended_and_says_so(job: OneJob) -> None:
    job.begin(SLOW, gpus=1, max_usd=0.0005)
    job.until(lambda: job.record.verdict is not None)
    assert job.record.verdict is Verdict.COST_CAP
    assert job.run.observed is not None
    assert not job.run.observed.live
    error = job.raised
    assert isinstance(error, AirflowFailException)
    assert str(error).startswith("CostCapReached: ")
    assert "its cap is 0.0005 USD" in str(error)
    assert "raise queue.max_usd" in str(error)
    ledger, requests = job.services.queue.snapshot()
    assert (ledger.leases, requests) == ({}, [])
