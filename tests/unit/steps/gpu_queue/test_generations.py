"""A generation holds and waits for what it asks itself, whatever the one before it asked the GPU queue for."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.unit.steps.lifecycle_model.actor import Fate
from tests.unit.steps.lifecycle_model.world import JOB_KEY, OTHER_KEY, SETTINGS, URI, World, job_request

from trainops import naming
from trainops.errors import ConfigError
from trainops.steps.gpu_queue import GpuQueue, LeaseEntry, QueueRequest

POOL = "NVIDIA_TESLA_T4/us-central1/standard"
LEDGER = f"write {naming.ledger_uri(SETTINGS.work)}"
LATER = timedelta(minutes=5)


def waiting(gpus: int) -> World:
    """A job key that asks for GPUs which another one holds."""
    world = World(gpus, timedelta(0), deadlines=False)
    world.begin()
    world.other_takes_gpus()
    world.look().to_the_end()
    assert request(world).gpus == {POOL: gpus}
    return world


def request(world: World) -> QueueRequest:
    (found,) = [item for item in world.calm.queue.snapshot()[1] if item.job_key == JOB_KEY]
    return found


def lease(world: World) -> LeaseEntry | None:
    return world.calm.queue.snapshot()[0].leases.get(JOB_KEY)


def cleared(world: World, gpus: int) -> None:
    """A person clears the task, whose code asks for another number of GPUs now, and it looks."""
    world.now += LATER
    world.next_try(cleared=True)
    world.request = job_request(gpus, deadlines=False)
    world.task().to_the_end()


def admitted(world: World) -> int:
    """The GPUs of the job that is submitted when there is room."""
    world.other_gives_back()
    world.look().to_the_end()
    (job,) = world.cloud.jobs
    (pool,) = job.body["jobSpec"]["workerPoolSpecs"]
    return int(pool["machineSpec"].get("acceleratorCount", 0))


@pytest.mark.parametrize(("before", "now"), [(1, 2), (2, 1)])
def test_a_generation_cleared_while_it_waits_is_admitted_with_the_gpus_that_it_asks_for_now(
    before: int, now: int
) -> None:
    world = waiting(before)
    cleared(world, now)
    assert request(world).gpus == {POOL: now}
    assert admitted(world) == now
    held = lease(world)
    assert held is not None
    assert held.gpus == {POOL: now}


@pytest.mark.parametrize(("before", "now"), [(1, 2), (2, 1)])
def test_a_reservation_of_what_the_generation_before_asked_is_given_back(before: int, now: int) -> None:
    world = World(before, timedelta(0), deadlines=False)
    first = world.task()
    first.up_to(LEDGER)
    first.go(Fate.CRASH_AFTER)
    wrong = lease(world)
    assert wrong is not None
    assert (wrong.state, wrong.gpus) == ("reserved", {POOL: before})
    cleared(world, now)
    held = lease(world)
    assert held is not None
    assert (held.state, held.gpus) == ("bound", {POOL: now})


def test_who_asks_for_less_keeps_the_place_and_who_asks_for_more_comes_last() -> None:
    fewer, more = waiting(2), waiting(1)
    arrived = request(fewer).arrived
    cleared(fewer, 1)
    assert request(fewer).arrived == arrived
    cleared(more, 2)
    later = request(more).arrived
    assert later is not None
    assert later >= more.existing_record.opened_at


def test_a_slow_process_of_the_generation_before_changes_neither_request_nor_reservation() -> None:
    world = waiting(1)
    before = world.existing_record
    cleared(world, 2)
    asked = request(world)
    slow = GpuQueue(world.calm.storage, SETTINGS.work, world.calm.queue.pools)
    assert slow.lease(before, URI).state == "waiting"
    assert request(world).gpus == asked.gpus
    world.other_gives_back()
    world.calm.queue.tick()
    reserved = lease(world)
    assert slow.lease(before, URI).state == "waiting"
    assert lease(world) == reserved


def test_a_generation_without_gpus_leaves_the_queue_that_the_one_before_stood_in() -> None:
    world = waiting(2)
    cleared(world, 0)
    assert len(world.cloud.jobs) == 1
    assert world.requests() == {OTHER_KEY}
    assert set(world.leases()) == {OTHER_KEY}


def test_a_generation_that_asks_for_more_than_there_can_be_is_refused_and_leaves_no_request() -> None:
    world = waiting(1)
    with pytest.raises(ConfigError, match="more than its quota can ever give"):
        cleared(world, 4)
    assert world.requests() == {OTHER_KEY}
    assert world.cloud.jobs == []


def test_a_changed_priority_counts_from_the_clear_on_and_keeps_the_age() -> None:
    world = waiting(2)
    arrived = request(world).arrived
    world.next_try(cleared=True)
    world.request = job_request(2, deadlines=False, priority=90)
    world.task().to_the_end()
    assert (request(world).priority, request(world).arrived) == (90, arrived)
