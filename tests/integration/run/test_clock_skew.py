"""Google's clock and the worker's differ by an hour: deadlines go by the worker's, the queue by Google's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integration.storage_proxy import StorageProxy, storage_proxy

from trainops.policy.record import Record, TaskTry, Verdict
from trainops.settings import Settings
from trainops.steps.record_store import RecordStore
from trainops.steps.run import Run
from trainops.steps.services import Services
from trainops.steps.start import JobRequest, begin
from trainops.triggers.run import RunTrigger

HOUR = 3600
SHORT = "import time; [(print('line', n, flush=True), time.sleep(0.5)) for n in range(6)]"
LONG = "import time; time.sleep(300)"
POOL = "{accelerator: NVIDIA_TESLA_T4, region: us-central1, provisioning: standard, quota: 1}"


class World:
    """An environment whose stand-ins agree with each other, and not with the worker."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.services = Services(settings)

    def begin(self, name: str, code: str, **limits: Any) -> Run:
        """Ask for the only GPU of the environment."""
        config = {
            "imageUri": "example/image", "containerCommand": ["python", "-c"], "containerArgs": [code],
            "acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": 1},
        }  # fmt: skip
        body = {"scaleTier": "CUSTOM", "masterType": "n1-standard-8", "region": "us-central1", "masterConfig": config}
        request = JobRequest(
            job_key=f"{name}-submit", run_key=name, experiment="exp", task="submit", display_name=name,
            training_input=body, **limits,
        )  # fmt: skip
        uri = f"{self.settings.work}/runs/exp/{name}/submit.json"
        begin(self.services.storage, self.settings, uri, request, _try(name), actor="submit")
        return Run(self.services, uri, actor="submit", say=lambda _: None)

    def follow(self, run: Run) -> Record:
        """Wait as a triggerer that has just been started does, until the run has ended."""
        task = {"dag_id": "d", "run_id": run.store.uri.split("/")[-2], "task_id": "wait", "map_index": -1}
        trigger = RunTrigger(record_uri=run.store.uri, task=task, until="ended", generation=1, poll_seconds=1.0)

        async def fired() -> list[Any]:
            return [event async for event in trigger.run()]

        [event] = asyncio.run(fired())
        assert event.payload["status"] == "done", event.payload
        return RecordStore(self.services.storage, run.store.uri).load()

    def jobs(self, run: Run) -> list[dict[str, Any]]:
        key = run.store.load().job_key
        return self.services.vertex("us-central1").list(f'labels.job-key="{key}"')


@pytest.fixture(scope="module")
def proxy(gcs_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StorageProxy]:
    with storage_proxy(gcs_url, tmp_path_factory.mktemp("proxy")) as proxy:
        yield proxy


@pytest.fixture(params=[HOUR, -HOUR], ids=["google-ahead", "google-behind"])
def world(
    request: pytest.FixtureRequest, vertex_settings: Settings, proxy: StorageProxy, vertex_faults: Callable[..., None],
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> Iterator[World]:  # fmt: skip
    proxy.fault(clock_skew=request.param)
    vertex_faults("clock_skew", seconds=request.param)
    values = vertex_settings.model_dump(by_alias=True, mode="json", exclude_none=True, exclude={"name"})
    values["endpoints"]["storage"] = proxy.url
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "test.yaml").write_text(yaml.safe_dump(values))
    (tmp_path / "gpu_pools.yaml").write_text(f"pools: [{POOL}]\n")
    monkeypatch.setenv("TRAINOPS_CONFIGS", str(tmp_path))
    monkeypatch.setenv("TRAINOPS_ENVIRONMENT", "test")
    world = World(Settings.model_validate(values | {"name": "test"}))
    assert _hours_off(world) == request.param // HOUR, "the premise"
    yield world
    world.services.close()
    proxy.behave()


def _hours_off(world: World) -> int:
    """Hours that an object which was just written is ahead."""
    uri = f"{world.settings.work}/now"
    world.services.storage.write_bytes(uri, b"", generation=0)
    info = world.services.storage.info(uri)
    assert info is not None
    return round((info.updated - datetime.now(UTC)).total_seconds() / HOUR)


def _try(name: str) -> TaskTry:
    return TaskTry(dag_id="d", run_id=name, task_id="submit", try_number=1)


def test_a_run_is_submitted_once_waited_for_and_accepted(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    run = world.begin("skewed", SHORT, max_waiting_hours=0.5, max_running_hours=0.2)
    run.advance()
    record = world.follow(run)
    assert (record.verdict, len(record.attempts)) == (Verdict.SUCCEEDED, 1)
    assert len(world.jobs(run)) == 1
    printed = capsys.readouterr().out
    assert [printed.count(f"] line {number}") for number in range(6)] == [1] * 6
    ledger, requests = world.services.queue.snapshot()
    assert (ledger.leases, requests) == ({}, [])


def test_a_run_whose_gpu_another_one_holds_waits_and_is_admitted(world: World) -> None:
    first, second = world.begin("first", SHORT), world.begin("second", SHORT, max_waiting_hours=0.5)
    first.advance()
    assert second.advance().what == "wait"
    assert world.jobs(second) == []
    assert world.follow(first).verdict is Verdict.SUCCEEDED
    second.advance()
    assert len(world.jobs(second)) == 1
    assert world.follow(second).verdict is Verdict.SUCCEEDED


def test_a_run_ends_at_its_deadline_by_the_clock_that_set_it(world: World) -> None:
    run = world.begin("late", LONG, try_limit=timedelta(seconds=12))
    run.advance()
    assert len(world.jobs(run)) == 1
    record = world.follow(run)
    assert record.verdict is Verdict.DEADLINE
    assert record.cancel is not None
    assert record.limits.finish_by is not None
    assert record.cancel.at > record.limits.finish_by
    assert [job["state"] for job in world.jobs(run)] == ["JOB_STATE_CANCELLED"]


def test_a_create_whose_reply_is_lost_is_found_and_not_made_again(
    world: World, vertex_faults: Callable[..., None]
) -> None:
    vertex_faults("drop_reply", method="customJobs.create", status=503)
    run = world.begin("lost-reply", SHORT)
    while run.advance().job is None:
        time.sleep(0.2)
    assert world.follow(run).verdict is Verdict.SUCCEEDED
    assert len(world.jobs(run)) == 1
