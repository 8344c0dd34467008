"""What the end of a job costs in requests, counted by the stand-ins, alone and in a burst."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest
from tests.integration.run.waiters import Waiters, event_of
from tests.ports import free_port

from localcloud.process import Process
from trainops.policy.lifecycle import TERMINAL
from trainops.settings import Settings

ROOT = Path(__file__).resolve().parents[3]
SILENT = "import time; time.sleep(4)"


@pytest.fixture
def proxy(gcs_url: str, tmp_path: Path) -> Iterator[str]:
    """The storage stand-in, which keeps a journal, before the GCS server."""
    port = free_port()
    command = [sys.executable, "-m", "localcloud.storage", "--port", str(port), "--upstream", gcs_url]
    command += ["--journal", str(tmp_path / "storage.jsonl")]
    process = Process.start(command, {"PYTHONPATH": str(ROOT / "include")}, tmp_path, tmp_path / "proxy.log")
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 120
    while not answers(f"{url}/healthz"):
        assert time.monotonic() < deadline, (tmp_path / "proxy.log").read_text()
        time.sleep(0.1)
    yield url
    process.ask_to_end()
    process.end(grace_seconds=5)


def answers(url: str) -> bool:
    try:
        return httpx.get(url).is_success
    except httpx.HTTPError:
        return False


@pytest.fixture
def waiters(vertex_settings: Settings, proxy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Waiters:
    endpoints = vertex_settings.endpoints.model_dump() | {"storage": proxy}
    settings = vertex_settings.model_dump(by_alias=True) | {"endpoints": endpoints}
    return Waiters(Settings.model_validate(settings), tmp_path, monkeypatch)


def asked_of_storage(waiters: Waiters, proxy: str) -> Counter[tuple[str, str]]:
    """Requests so far by kind and object of a run, without what is asked once a minute, whatever happens."""
    entries = httpx.get(f"{proxy}/journal").json()
    folder, minutely = f"{waiters.settings.buckets.work}/runs/exp/", ("/metrics.jsonl", "/log-positions/")
    mine = [entry for entry in entries if entry["object"].startswith(folder)]
    named = [(entry["operation"], entry["object"].removeprefix(folder)) for entry in mine]
    return Counter(one for one in named if not any(part in one[1] for part in minutely))


def own_lists(waiters: Waiters) -> list[str]:
    """The filters of lists of single job keys so far, as far as they were answered."""
    lists = [call for call in waiters.journal() if call["method"] == "customJobs.list" and call["status"] == 200]
    filters = [parse_qs(call["query"]).get("filter", [""])[0] for call in lists]
    return [text for text in filters if "job-key" in text]


def test_an_end_costs_one_list_and_three_requests_of_storage(waiters: Waiters, proxy: str) -> None:
    uri = waiters.submit("alone", SILENT)
    trigger = waiters.trigger(uri)
    stored, lists = asked_of_storage(waiters, proxy), own_lists(waiters)
    assert asyncio.run(event_of(trigger))["status"] == "done"
    made = asked_of_storage(waiters, proxy) - stored
    assert made == {
        ("read", "alone/submit.json"): 2,  # when it begins to wait, and when the job has ended
        ("read", "alone/g1/submit/a1/control/preempted"): 1,
        ("upload", "alone/submit.json"): 1,
    }
    assert len(own_lists(waiters)) - len(lists) == 1


def test_jobs_that_end_between_two_looks_are_listed_together(
    waiters: Waiters, proxy: str, vertex_faults: Callable[..., None], tmp_path: Path
) -> None:
    told = tmp_path / "end"
    until_told = f"import os, time\nwhile not os.path.exists({str(told)!r}): time.sleep(0.2)"
    uris = [waiters.submit(f"run-{number}", until_told) for number in range(6)]
    names = [str(waiters.run(f"run-{number}").attempts[0].job_name) for number in range(6)]
    stored, lists = asked_of_storage(waiters, proxy), own_lists(waiters)

    async def end_unseen() -> list[dict[str, Any]]:
        waiting = [asyncio.create_task(event_of(waiters.trigger(uri))) for uri in uris]
        await asyncio.sleep(2)
        vertex_faults("answer", method="customJobs.list", status=503, count=None)
        told.touch()
        await asyncio.to_thread(wait_until_ended, waiters, names)
        httpx.delete(f"{waiters.settings.vertex_endpoint('us-central1')}/faults").raise_for_status()
        return list(await asyncio.gather(*waiting))

    assert [event["status"] for event in asyncio.run(end_unseen())] == ["done"] * 6
    (asked,) = own_lists(waiters)[len(lists) :]
    assert asked.count("job-key") == 6
    made = asked_of_storage(waiters, proxy) - stored
    assert {made["upload", f"run-{number}/submit.json"] for number in range(6)} == {1}
    assert {made["read", f"run-{number}/submit.json"] for number in range(6)} == {2}


def wait_until_ended(waiters: Waiters, names: Sequence[str]) -> None:
    """Ask for each job by its name, as lists are refused."""
    jobs = waiters.services.vertex("us-central1")
    deadline = time.monotonic() + 120
    while any(jobs.get(name)["state"] not in TERMINAL for name in names):
        assert time.monotonic() < deadline
        time.sleep(0.2)
