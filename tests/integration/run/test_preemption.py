"""Runs of one triggerer make room for others: on a real GCS server and the Vertex stand-in, whose journal judges."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest
from tests.integration.run.waiters import Waiters, event_of

from trainops.policy.record import Verdict
from trainops.settings import Settings

POOLS = """
pools:
  - {accelerator: NVIDIA_TESLA_T4, region: us-central1, provisioning: standard, quota: 2}
policy: {grace_minutes: 0.1}
"""
FINAL = {"JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED"}

SAVES = """
import os, sys, time, urllib.error, urllib.parse, urllib.request
host = os.environ["STORAGE_EMULATOR_HOST"]
bucket, _, folder = os.environ["TRAINOPS_CONTROL_URI"].removeprefix("gs://").partition("/")
def asked():
    name = urllib.parse.quote(folder + "/preempt", safe="")
    try:
        urllib.request.urlopen(host + "/storage/v1/b/" + bucket + "/o/" + name)
    except urllib.error.HTTPError:
        return False
    return True
if folder.endswith("/a1/control"):
    until = time.monotonic() + 120
    while time.monotonic() < until and not asked():
        time.sleep(0.2)
    name = urllib.parse.quote(folder + "/preempted", safe="")
    address = host + "/upload/storage/v1/b/" + bucket + "/o?uploadType=media&name=" + name
    urllib.request.urlopen(urllib.request.Request(address, data=b"{}", method="POST"))
    print("saved")
else:
    print("resumed")
"""
"""A trainer with the control protocol: the first attempt runs until it is asked to leave, the next one ends well."""

DEAF = "import os, time; time.sleep(120 if '/a1/' in os.environ['TRAINOPS_CONTROL_URI'] else 0)"
"""One that says it has the protocol, and does not listen."""


@pytest.fixture
def waiters(vertex_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Waiters:
    return Waiters(vertex_settings, tmp_path, monkeypatch, POOLS)


def both(waiters: Waiters, code: str) -> list[dict[str, Any]]:
    """A run that holds all GPUs, and an urgent one that comes when that one's job runs; answers how both ended."""
    victim = waiters.submit("victim", code, gpus=2, preemptible=True)

    async def one_after_the_other() -> list[dict[str, Any]]:
        first = asyncio.create_task(event_of(waiters.trigger(victim)))
        await asyncio.sleep(3)
        urgent = waiters.submit("urgent", "print('urgent')", gpus=2, priority=100)
        return list(await asyncio.gather(first, event_of(waiters.trigger(urgent))))

    return asyncio.run(one_after_the_other())


def spans(waiters: Waiters) -> list[tuple[str, int, int]]:
    """Each job of the runs with the places in the journal at which it began to exist and ended."""
    labels = {job["name"].rpartition("/")[2]: job["labels"] for job in waiters.services.vertex("us-central1").list("")}
    began: dict[str, int] = {}
    ended: dict[str, int] = {}
    for place, entry in enumerate(waiters.journal("job_state")):
        if entry["job"] in labels:
            began.setdefault(entry["job"], place)
            if entry["state"] in FINAL:
                ended[entry["job"]] = place
    return sorted(
        ((f"{labels[job]['run-key']} {labels[job]['attempt']}", began[job], ended[job]) for job in began),
        key=lambda span: span[1],
    )


def test_a_run_saves_its_state_makes_room_and_goes_on_in_the_same_try(
    waiters: Waiters, capsys: pytest.CaptureFixture[str]
) -> None:
    events = both(waiters, SAVES)
    assert [event["status"] for event in events] == ["done", "done"]
    assert [item.verdict for item in waiters.run("victim").attempts] == [Verdict.PREEMPTED, Verdict.SUCCEEDED]
    assert [item.verdict for item in waiters.run("urgent").attempts] == [Verdict.SUCCEEDED]
    shown = capsys.readouterr().out
    assert "saved" in shown
    assert "resumed" in shown
    assert "the GPU queue: asks" in shown  # in the log of the run that makes room
    in_order = spans(waiters)
    assert [name for name, _, _ in in_order] == ["victim 1", "urgent 1", "victim 2"]
    assert all(earlier[2] < later[1] for earlier, later in itertools.pairwise(in_order)), in_order


def test_one_that_does_not_listen_is_cancelled_after_its_grace_and_goes_on_later(waiters: Waiters) -> None:
    events = both(waiters, DEAF)
    assert [event["status"] for event in events] == ["done", "done"]
    assert [item.verdict for item in waiters.run("victim").attempts] == [Verdict.PREEMPTED, Verdict.SUCCEEDED]
    assert [name for name, _, _ in spans(waiters)] == ["victim 1", "urgent 1", "victim 2"]


def test_the_story_of_the_run_tells_for_whom_it_made_room(waiters: Waiters) -> None:
    both(waiters, SAVES)
    story = [f"{line.by}: {line.what} ({line.why})" for line in waiters.run("victim").story]
    assert any("the GPU queue: asks" in line and "urgent-submit" in line for line in story), story
