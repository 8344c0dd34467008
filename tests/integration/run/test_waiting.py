"""Many runs that wait in one triggerer, on a real GCS server and the Vertex stand-in."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from trainops.policy.record import TaskTry
from trainops.settings import Settings
from trainops.steps.run import Run
from trainops.steps.services import Services
from trainops.steps.start import JobRequest, begin
from trainops.triggers.run import RunTrigger

POLL_SECONDS = 1.0
TALKING = "import time; [(print('line', n, flush=True), time.sleep(0.4)) for n in range(25)]"


class Waiters:
    """Runs of one environment, each followed by a trigger, as a triggerer does."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.services = Services(settings)

    def submit(self, name: str, code: str = TALKING) -> str:
        """Begin a run, submit its job, and return its record's URI."""
        config = {"imageUri": "example/image", "containerCommand": ["python", "-c"], "containerArgs": [code]}
        body = {"scaleTier": "CUSTOM", "masterType": "n1-standard-8", "region": "us-central1", "masterConfig": config}
        request = JobRequest(
            job_key=f"{name}-submit", run_key=name, experiment="exp", task="submit", display_name=name,
            training_input=body,
        )  # fmt: skip
        uri = f"{self.settings.work}/runs/exp/{name}/submit.json"
        tried = TaskTry(dag_id="d", run_id=name, task_id="submit", try_number=1)
        begin(self.services.storage, self.settings, uri, request, tried, actor="submit")
        Run(self.services, uri, actor="submit", say=lambda _: None).advance()
        return uri

    def trigger(self, uri: str) -> RunTrigger:
        task = {"dag_id": "d", "run_id": uri.split("/")[-2], "task_id": "wait", "map_index": -1}
        return RunTrigger(record_uri=uri, task=task, until="ended", generation=1, poll_seconds=POLL_SECONDS)

    def calls(self) -> Counter[str]:
        """What the stand-in was asked so far, by method."""
        entries = httpx.get(f"{self.settings.vertex_endpoint('us-central1')}/journal?event=call").json()["entries"]
        return Counter(entry["method"] for entry in entries)


@pytest.fixture
def waiters(vertex_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Waiters:
    monkeypatch.setenv("TRAINOPS_CONFIGS", str(tmp_path))
    monkeypatch.setenv("TRAINOPS_ENVIRONMENT", "test")
    (tmp_path / "gpu_pools.yaml").write_text("pools: []\n")
    (tmp_path / "environments").mkdir()
    values = vertex_settings.model_dump(by_alias=True, mode="json", exclude_none=True)
    del values["name"]
    (tmp_path / "environments" / "test.yaml").write_text(yaml.safe_dump(values))
    return Waiters(vertex_settings)


async def event_of(trigger: RunTrigger) -> dict[str, Any]:
    events: list[Any] = [event async for event in trigger.run()]
    assert len(events) == 1
    payload: dict[str, Any] = events[0].payload
    return payload


def test_runs_that_wait_together_share_the_list_and_the_reading_of_logs(
    waiters: Waiters, capsys: pytest.CaptureFixture[str]
) -> None:
    uris = [waiters.submit(f"run-{number}") for number in range(6)]
    before = waiters.calls()

    async def wait_for_all() -> list[dict[str, Any]]:
        return list(await asyncio.gather(*(event_of(waiters.trigger(uri)) for uri in uris)))

    events = asyncio.run(wait_for_all())
    assert [event["status"] for event in events] == ["done"] * 6
    made = waiters.calls() - before
    ticks = 25  # the jobs print for ten seconds; the slack is for slow machines
    # Each run asks for its job on its own once, when that has ended; those that come later catch up with the log first.
    assert made["customJobs.list"] <= ticks + 6, made
    assert made["entries.list"] <= ticks + 6, made
    assert told(capsys) == {f"line {number}": 6 for number in range(25)}


def told(capsys: pytest.CaptureFixture[str]) -> Counter[str]:
    """Lines of replicas in the logs of all triggers."""
    return Counter(re.findall(r"\[workerpool0-0\] (line \d+)", capsys.readouterr().out))


@pytest.mark.case("C106")
def test_a_triggerer_that_is_started_again_goes_on_in_the_log_where_the_killed_one_was(
    waiters: Waiters, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = waiters.submit("restarted")
    _, arguments = waiters.trigger(uri).serialize()

    async def killed_and_started_again() -> dict[str, Any]:
        first = asyncio.create_task(event_of(RunTrigger(**arguments)))
        await asyncio.sleep(6)
        first.cancel()
        await asyncio.sleep(1)
        return await event_of(RunTrigger(**arguments))

    assert asyncio.run(killed_and_started_again())["status"] == "done"
    assert told(capsys) == {f"line {number}": 1 for number in range(25)}
    assert list(waiters.services.storage.list(f"{uri.removesuffix('.json')}/log-positions/")) == []


@pytest.mark.case("C031")
def test_a_job_that_ends_while_nothing_can_be_read_is_found_when_it_can_again(
    waiters: Waiters, vertex_faults: Callable[..., None]
) -> None:
    uri = waiters.submit("unseen", "import time; time.sleep(3)")
    trigger = waiters.trigger(uri)

    async def blind_for_a_while() -> dict[str, Any]:
        waiting = asyncio.create_task(event_of(trigger))
        await asyncio.sleep(2)
        vertex_faults("answer", method="customJobs.list", status=503, count=6)
        return await waiting

    assert asyncio.run(blind_for_a_while())["status"] == "done"


@pytest.mark.case("C032")
def test_a_permanent_refusal_to_list_ends_the_wait_with_its_reason(
    waiters: Waiters, vertex_faults: Callable[..., None]
) -> None:
    uri = waiters.submit("forbidden", "import time; time.sleep(60)")

    async def refused() -> dict[str, Any]:
        waiting = asyncio.create_task(event_of(waiters.trigger(uri)))
        await asyncio.sleep(3)
        vertex_faults("answer", method="customJobs.list", status=403, count=None)
        return await waiting

    event = asyncio.run(refused())
    assert event["status"] == "error"
    assert "403" in event["message"]
