"""Many runs that wait in one triggerer, on a real GCS server and the Vertex stand-in."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.run.waiters import Waiters, event_of

from trainops.settings import Settings
from trainops.triggers.run import RunTrigger


@pytest.fixture
def waiters(vertex_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Waiters:
    return Waiters(vertex_settings, tmp_path, monkeypatch)


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
