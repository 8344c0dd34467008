"""Reports of users about kills and clears, on a running Airflow: the stand-in's jobs are the judge."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import httpx
import psutil
import pytest

from trainops.steps.record_store import RecordStore, records_below

if TYPE_CHECKING:
    from tests.live.cloud import Cloud

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

RUN = "kept_alive"
WORKER, TRIGGERER = "on_a_worker", "in_the_triggerer"
TASKS = f"/api/v2/dags/held/dagRuns/{RUN}/taskInstances"


class Held:
    """The run of two tasks whose jobs last."""

    def __init__(self, cloud: Cloud, rest: httpx.Client) -> None:
        self.cloud = cloud
        self.rest = rest

    def until(self, task: str, state: str, number: int = 1) -> None:
        """Wait until a try of a task is in a state."""

        def arrived() -> bool:
            at = self.rest.get(f"{TASKS}/{task}").json()
            return (at["state"], at["try_number"]) == (state, number)

        self.cloud.until(arrived, 120, lambda: (self.cloud.states("held", RUN), self.cloud.log("held", RUN, task)))

    def jobs(self, task: str) -> list[dict[str, Any]]:
        """The jobs of a task, the oldest first."""
        found = self.cloud.services.vertex("us-central1").list(f'display_name="{task}"')
        return sorted(found, key=lambda job: str(job["createTime"]))

    def states(self, task: str) -> list[str]:
        """Their states."""
        return [str(job["state"]).removeprefix("JOB_STATE_") for job in self.jobs(task)]

    def until_states(self, task: str, *states: str) -> None:
        """Wait until a task's jobs are in these states."""
        self.cloud.until(lambda: self.states(task) == list(states), 120, lambda: self.jobs(task))

    def runner(self, task: str) -> psutil.Process:
        """The process that runs a task now; its parent is the executor's worker, which supervises it."""
        title = f"airflow worker -- {self.rest.get(f'{TASKS}/{task}').json()['id']}"
        found: list[psutil.Process] = []

        def there() -> bool:
            processes = psutil.process_iter(["cmdline"])
            found[:] = [one for one in processes if " ".join(one.info["cmdline"] or ()).strip() == title]
            return bool(found)

        self.cloud.until(there, 60, lambda: self.cloud.states("held", RUN))
        return found[0]

    def until_waiting(self, task: str, number: int) -> None:
        """Wait until a try has found its job, and waits for it."""
        self.until(task, "running", number)
        self.cloud.until(lambda: self.record(task).load().owner.try_number == number, 60, lambda: self.jobs(task))

    def record(self, task: str) -> RecordStore:
        """The record of a task's job."""
        labels = self.jobs(task)[0]["labels"]
        folder = f"{self.cloud.services.settings.work}/runs/{labels['experiment']}/{labels['run-key']}"
        return next(one for one in records_below(self.cloud.services.storage, folder) if f"/{task}.json" in one.uri)

    def clear(self, task: str) -> None:
        """Clear a task, as a person does."""
        order = {"dry_run": False, "task_ids": [task], "dag_run_id": RUN, "only_failed": False}
        self.rest.post("/api/v2/dags/held/clearTaskInstances", json=order).raise_for_status()


@pytest.fixture
def held(cloud: Cloud, rest: httpx.Client) -> Held:
    cloud.wait_for_dag("held")
    cloud.api.unpause("held")
    cloud.trigger("held", RUN)
    found = Held(cloud, rest)
    found.until_states(WORKER, "RUNNING")
    found.until(TRIGGERER, "deferred")
    return found


@pytest.mark.case("C005")
@pytest.mark.case("C007")
@pytest.mark.case("C012")
@pytest.mark.case("C020")
@pytest.mark.case("C021")
@pytest.mark.case("C024")
def test_a_job_outlives_the_death_of_its_worker_and_not_the_kill_or_clear_of_its_task(held: Held) -> None:
    held.until_waiting(WORKER, 1)
    supervisor = held.runner(WORKER).parent()
    assert supervisor is not None
    os.kill(supervisor.pid, signal.SIGTERM)  # a worker is shut down
    held.clear(TRIGGERER)
    held.until_waiting(WORKER, 2)
    held.runner(WORKER).kill()  # a worker dies
    held.until_waiting(WORKER, 3)
    assert held.states(WORKER) == ["RUNNING"]

    held.clear(WORKER)  # while it runs
    held.until_states(WORKER, "CANCELLED", "RUNNING")
    held.rest.patch(f"{TASKS}/{WORKER}", json={"new_state": "failed"}).raise_for_status()
    held.until_states(WORKER, "CANCELLED", "CANCELLED")

    held.until_states(TRIGGERER, "CANCELLED", "SUCCEEDED")
    held.until(TRIGGERER, "success", 2)
    assert "the task was cleared: generation 2 begins" in held.cloud.log("held", RUN, TRIGGERER)
    held.clear(TRIGGERER)
    held.until_states(TRIGGERER, "CANCELLED", "SUCCEEDED", "SUCCEEDED")
    held.until(TRIGGERER, "success", 3)
    assert [job["labels"]["generation"] for job in held.jobs(TRIGGERER)] == ["1", "2", "3"]
    assert held.states(WORKER) == ["CANCELLED", "CANCELLED"]
