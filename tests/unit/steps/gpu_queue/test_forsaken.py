"""A reservation of somebody who left while it was made is freed, whatever became of the process that made it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.unit.steps.lifecycle_model.actor import Actor, Fate
from tests.unit.steps.lifecycle_model.model_storage import ModelStorage
from tests.unit.steps.lifecycle_model.world import JOB_KEY, SETTINGS, World

from trainops import naming
from trainops.steps.gpu_queue import GpuQueue

WRITE = f"write {naming.ledger_uri(SETTINGS.work)}"
REQUEST = naming.request_uri(SETTINGS.work, JOB_KEY)


@pytest.fixture
def admits(world: World) -> Actor:
    """A process that is about to write an admission, whose owner has left the queue since it looked."""
    world.other_gives_back()
    calm = world.calm.queue
    tick = Actor("tick", lambda actor: GpuQueue(ModelStorage(world.objects, actor), calm.work, calm.pools).tick())
    tick.up_to(WRITE)
    calm.release(JOB_KEY)
    return tick


def test_the_process_that_admitted_it_frees_it(world: World, admits: Actor) -> None:
    assert JOB_KEY not in admits.to_the_end().ledger.leases
    assert world.leases() == {}


def test_a_write_that_was_stored_but_not_answered_is_freed_too_when_somebody_else_wrote_since(
    world: World, admits: Actor
) -> None:
    admits.go(Fate.SENT_AGAIN)
    assert set(world.leases()) == {JOB_KEY}
    world.calm.queue.adopt()
    assert JOB_KEY not in admits.to_the_end().ledger.leases
    assert world.leases() == {}


@pytest.mark.parametrize("fate", [Fate.CRASH_AFTER, Fate.REPLY_LOST])
def test_after_the_process_died_or_heard_nothing_the_next_look_of_anybody_frees_it(
    world: World, admits: Actor, fate: Fate
) -> None:
    admits.go(fate)
    assert admits.ended
    assert set(world.leases()) == {JOB_KEY}
    world.calm.queue.tick()
    assert world.leases() == {}


def test_after_an_error_at_the_look_whether_it_left_the_next_look_frees_it(world: World, admits: Actor) -> None:
    admits.go()
    admits.up_to(f"look at {REQUEST}")
    admits.go(Fate.NOT_DONE)
    assert admits.ended
    assert set(world.leases()) == {JOB_KEY}
    world.calm.queue.tick()
    assert world.leases() == {}


def test_a_reservation_whose_request_cannot_be_read_stays(world: World) -> None:
    world.other_gives_back()
    world.calm.queue.tick()
    assert set(world.leases()) == {JOB_KEY}
    world.objects.write(REQUEST, b'{"kind": "of a later version"}', None)
    world.now += timedelta(minutes=1)
    world.calm.queue.tick()
    assert set(world.leases()) == {JOB_KEY}
