"""The command `trainops queue` against a real GCS server: what is shown, and what orders do."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.integration.run.old_task import Seen

from trainops.cli import main
from trainops.policy.record import Record, TaskTry
from trainops.steps.gpu_queue import GpuQueue
from trainops.steps.services import Services

POOL = "NVIDIA_TESLA_T4/us-central1/standard"
JOB = "projects/1/locations/us-central1/customJobs/1"


@pytest.fixture
def queue(seen: Seen) -> GpuQueue:
    """One job key holds the pool of two GPUs, another one waits for it."""
    services = Services(seen.settings)
    queue = services.queue
    for key in ("exp-first-submit_training", "exp-second-submit_training"):
        record = a_record(key, services)
        queue.enqueue(record, f"{seen.settings.work}/runs/exp/{key}.json")
        queue.tick()
    queue.bind("exp-first-submit_training", JOB)
    return queue


def a_record(key: str, services: Services) -> Record:
    return Record(
        job_key=key, run_key=key.removesuffix("-submit_training"), experiment="exp", priority=50, region="us-central1",
        owner=TaskTry(dag_id="d", run_id="r", task_id="submit_training"), opened_at=services.now(), spec={},
        spec_hash="", folder=f"{services.settings.work}/runs/exp/{key}/g1", accelerators={"NVIDIA_TESLA_T4": 2},
    )  # fmt: skip


def asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """What the command prints as JSON."""
    assert main(["queue", *arguments, "--output", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command says when it refuses."""
    assert main(["queue", *arguments]) == 2
    return capsys.readouterr().err


@pytest.mark.usefixtures("queue")
def test_everybody_is_listed_who_holds_gpus_first(capsys: pytest.CaptureFixture[str]) -> None:
    rows = asked(capsys, "list")
    assert [(row["job_key"], row["state"]) for row in rows] == [
        ("exp-first-submit_training", "bound"),
        ("exp-second-submit_training", "waits"),
    ]
    assert main(["queue"]) == 0
    shown = capsys.readouterr().out
    assert f"{POOL:<50} 2 of 2 held" in shown
    assert "exp-second-submit_training: waits, priority normal" in shown


@pytest.mark.usefixtures("queue")
def test_the_beginning_of_a_key_is_enough_and_a_wrong_one_is_answered_with_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "exp-first-submit_training holds 2" in asked(capsys, "why", "exp-sec")["reason"]
    assert "several job keys begin so" in refused(capsys, "why", "exp-")
    assert "exp-second-submit_training" in refused(capsys, "why", "exp-secnd-submit_training")


def test_an_order_says_who_and_why_and_can_be_taken_back(queue: GpuQueue, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["queue", "hold", "exp-second", "--by", "ana", "--why", "until Monday"]) == 0
    assert "ana" in queue.tick().reason("exp-second-submit_training")
    assert main(["queue", "set-priority", "exp-second", "urgent", "--by", "ben"]) == 0
    assert main(["queue", "release", "exp-second", "--by", "ana"]) == 0
    capsys.readouterr()
    orders = queue.orders.all()[0]["exp-second-submit_training"]
    assert (orders.hold, orders.priority) == (None, None)
    assert ["hold by ana" in line or "priority by ben" in line for line in orders.history[:2]] == [True, True]
    assert "released by ana" in orders.history[-1]


def test_a_higher_priority_counts_from_the_next_look_on(queue: GpuQueue, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["queue", "set-priority", "exp-second", "high"]) == 0
    capsys.readouterr()
    (row,) = [row for row in asked(capsys, "list") if row["state"] == "waits"]
    assert row["priority"] == 75
    assert "allowed: low, normal, high, urgent" in refused(capsys, "set-priority", "exp-second", "hihg")
    assert queue.look().made.asked


def test_a_pool_is_drained_and_opened(queue: GpuQueue, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["queue", "drain", POOL]) == 0
    queue.release("exp-first-submit_training")
    assert queue.tick().ledger.leases == {}
    assert main(["queue", "release", POOL]) == 0
    assert set(queue.tick().ledger.leases) == {"exp-second-submit_training"}
    assert "no such GPU pool" in refused(capsys, "drain", "NVIDIA_TESLA_T4/us-central1/spt")


@pytest.mark.usefixtures("queue")
def test_who_cannot_save_its_state_is_not_asked_to_make_room(capsys: pytest.CaptureFixture[str]) -> None:
    assert "cannot save its state" in refused(capsys, "preempt", "exp-first")
    assert "holds no GPUs" in refused(capsys, "preempt", "exp-second")
