"""Machines without GPUs queue where gpu_pools.yaml has a pool for them, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.integration.run.conftest import POOLS
from tests.integration.run.one_job import SLOW, OneJob

from trainops.errors import ConfigError
from trainops.steps.run_verdict import summary
from trainops.steps.services import Services
from trainops.steps.start import CandidateInput

CPUS = {"accelerator": "CPU", "region": "us-central1", "provisioning": "standard", "quota": 1}
POOL = "CPU/us-central1/standard"


@pytest.fixture
def pool(job: OneJob, tmp_path: Path) -> str:
    """A pool of one machine."""
    (tmp_path / "gpu_pools.yaml").write_text(yaml.safe_dump({"pools": [*POOLS, CPUS]}))
    job.services = job.run.services = Services(job.settings)
    return POOL


def test_a_job_on_cpus_holds_its_machine_of_the_pool_while_it_runs(job: OneJob, pool: str) -> None:
    job.begin(SLOW)
    job.until_running()
    assert job.services.queue.snapshot()[0].leases["r-submit"].gpus == {pool: 1}
    job.run.cancel("the test is over")
    job.until(lambda: job.record.verdict is not None)
    assert job.services.queue.snapshot()[0].leases == {}
    assert summary(job.record)["gpu_hours"] == 0


def test_without_a_pool_it_does_not_queue(job: OneJob) -> None:
    job.begin()
    job.until(lambda: job.record.verdict is not None)
    assert job.record.accelerators == {}


@pytest.mark.usefixtures("pool")
def test_where_a_candidate_of_it_does_not_queue_none_does(job: OneJob) -> None:
    job.begin(candidates=(CandidateInput(training_input={"region": "us-east1"}),))
    assert [item.accelerators for item in job.record.candidates] == [{}, {}]


def test_candidates_with_and_without_gpus_are_refused(job: OneJob) -> None:
    cpus = CandidateInput(training_input={"masterConfig": {"imageUri": "example/image"}})
    with pytest.raises(ConfigError, match="all candidates take GPUs, or none does"):
        job.begin(gpus=1, candidates=(cpus,))
