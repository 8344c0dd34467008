"""What Google has no machines for in one place runs in the next one, and Spot machines are given up in the end."""

from __future__ import annotations

import httpx
import pytest
from tests.integration.run.one_job import SLOW, OneJob

from trainops.gcp.vertex import region_of
from trainops.policy import candidates
from trainops.policy.record import Verdict
from trainops.steps.run_verdict import summary
from trainops.steps.start import CandidateInput

EAST = CandidateInput(training_input={"region": "us-east1"})
SPOT = {"vertex": {"strategy": "SPOT"}}


def regions(job: OneJob) -> list[str]:
    return [region_of(attempt.job_name) for attempt in job.record.attempts if attempt.job_name]


@pytest.mark.case("C080")
@pytest.mark.parametrize("gpus", [0, 1])
def test_a_region_without_machines_is_left_for_the_next_one_at_once(job: OneJob, gpus: int) -> None:
    job.faults("stockout", region="us-central1")
    job.begin(gpus=gpus, candidates=(EAST,))
    job.until(lambda: job.record.verdict is not None)
    assert [attempt.verdict for attempt in job.record.attempts] == [Verdict.STOCKOUT, Verdict.SUCCEEDED]
    assert regions(job) == ["us-central1", "us-east1"]
    first, second = job.record.attempts
    assert first.ended_at is not None
    assert second.intent_at - first.ended_at < candidates.BACK_OFF
    assert summary(job.record)["region"] == "us-east1"
    assert any("on 1 x NVIDIA_TESLA_T4 in us-east1" in line.why for line in job.record.story) is bool(gpus)
    ledger, requests = job.services.queue.snapshot()
    assert (ledger.leases, requests) == ({}, [])


def test_where_no_region_has_machines_each_is_tried_again_after_its_own_pause(
    job: OneJob, vertex_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "BACK_OFF", candidates.BACK_OFF / 30)
    job.faults("stockout")
    job.begin(gpus=1, candidates=(EAST,))
    job.until(lambda: len(job.record.attempts) > 3)
    httpx.delete(f"{vertex_url}/faults").raise_for_status()
    job.until(lambda: job.record.verdict is not None)
    assert job.record.verdict is Verdict.SUCCEEDED
    assert regions(job)[:4] == ["us-central1", "us-east1", "us-central1", "us-east1"]


def test_while_another_run_holds_the_pool_of_the_first_choice_the_second_one_is_taken(job: OneJob) -> None:
    job.another_holds(2)
    job.begin(gpus=1, candidates=(EAST,))
    job.until(lambda: job.record.verdict is not None)
    assert regions(job) == ["us-east1"]
    assert job.record.attempts[0].candidate == 1


def test_after_so_many_losses_spot_machines_are_given_up_for_those_on_demand(
    job: OneJob, vertex_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "BACK_OFF", candidates.BACK_OFF / 100)
    on_demand = CandidateInput(training_input={"vertex": {"strategy": "STANDARD"}}, after_spot=True)
    job.begin(SLOW, gpus=1, changes=SPOT, candidates=(on_demand,), max_spot_losses=2)
    for losses in (1, 2):
        job.until_running()
        name = job.record.attempts[-1].job_name
        taken = {"kind": "spot_loss", "job": name, "final": True}
        httpx.post(f"{vertex_url}/faults", json=taken).raise_for_status()
        job.until(lambda many=losses: len(job.record.attempts) > many)  # type: ignore[misc]
    job.until_running()
    assert [attempt.verdict for attempt in job.record.attempts] == [Verdict.SPOT_LOST, Verdict.SPOT_LOST, None]
    assert [attempt.candidate for attempt in job.record.attempts] == [0, 0, 1]
    ledger, _ = job.services.queue.snapshot()
    assert ledger.leases["r-submit"].gpus == {"NVIDIA_TESLA_T4/us-central1/standard": 1}
    job.run.cancel("the test is over")
    job.until(lambda: job.record.verdict is not None)


def test_another_process_goes_on_with_the_candidate_that_was_taken(job: OneJob) -> None:
    job.faults("stockout", region="us-central1")
    job.begin(SLOW, gpus=1, candidates=(EAST,))
    job.until(lambda: job.runs_in("us-east1"))
    again = OneJob(job.settings, job.faults)
    again.run.advance()
    assert again.runs_in("us-east1")
    again.run.cancel("the test is over")
    again.until(lambda: again.record.verdict is not None)
    assert again.record.verdict is Verdict.CANCELLED
