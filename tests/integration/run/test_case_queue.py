"""Reports of users whose pools let too many jobs run: GPUs are counted by the queue, and the stand-in is the judge."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from tests.integration.run.old_task import Seen, Try, arguments, execute

from trainops.providers.google.cloud.operators.mlengine import MLEngineStartTrainingJobOperator as Operator

FINAL = {"JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED"}


def most_at_once(seen: Seen) -> int:
    """The largest number of this project's jobs that existed at one time without having ended."""
    ours = {str(job["name"]).rpartition("/")[2] for job in seen.jobs()}
    entries = httpx.get(f"{seen.url}/journal", params={"event": "job_state"}).raise_for_status().json()["entries"]
    living: set[str] = set()
    most = 0
    for entry in entries:
        if entry["job"] in ours:
            living = living - {entry["job"]} if entry["state"] in FINAL else living | {entry["job"]}
            most = max(most, len(living))
    return most


@pytest.mark.case("C048")
@pytest.mark.case("C049")
@pytest.mark.case("C050")
@pytest.mark.case("C052")
@pytest.mark.parametrize("deferrable", [True, False], ids=["deferred", "on workers"])
def test_of_three_mapped_trainings_one_job_runs_at_a_time_where_the_quota_holds_one(
    seen: Seen, deferrable: bool
) -> None:
    given = arguments("import time; time.sleep(2)", gpus=2, deferrable=deferrable)  # the quota is 2

    def train(index: int) -> Any:
        return execute(Operator(**given), Try(1, map_index=index))

    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(train, range(3)))
    assert [result["verdict"] for result in results] == ["succeeded"] * 3
    assert len(seen.jobs()) == 3
    assert most_at_once(seen) == 1


def test_mapped_jobs_keep_their_orders_and_what_they_sent_apart(seen: Seen) -> None:
    for index in (0, 1):
        execute(Operator(**arguments()), Try(1, map_index=index))
    controls = [
        variable["value"] for job in seen.jobs()
        for variable in job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["env"]
    ]  # fmt: skip
    assert [control.rpartition("/g1/")[2] for control in controls] == ["train-0/a1/control", "train-1/a1/control"]
