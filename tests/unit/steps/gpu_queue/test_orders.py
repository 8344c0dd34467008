"""What people ask of the queue counts from the next look on, and says who and when."""

from __future__ import annotations

from tests.unit.steps.lifecycle_model.world import JOB_KEY, OTHER_KEY, SETTINGS, World

from trainops import naming
from trainops.steps.gpu_queue.orders import JobOrders, Order, PoolOrders, PriorityOrder

POOL = "NVIDIA_TESLA_T4/us-central1/standard"


def order(world: World, why: str = "") -> Order:
    return Order(by="ana", at=world.now, why=why)


def test_a_job_that_is_held_does_not_start_and_says_who_holds_it(world: World) -> None:
    world.calm.queue.orders.change_job(JOB_KEY, lambda _now: JobOrders(hold=order(world, "until Monday")))
    world.other_gives_back()
    found = world.look().to_the_end()
    assert "ana" in found.why
    assert "until Monday" in found.why
    world.calm.queue.orders.change_job(JOB_KEY, lambda _now: JobOrders())
    world.look().to_the_end()
    assert len(world.cloud.jobs) == 1


def test_another_priority_counts_for_one_that_waits(world: World) -> None:
    third = world.existing_record.model_copy(update={"job_key": "third", "priority": 90})
    world.calm.queue.enqueue(third, "gs://my-bucket/third.json")
    urgent = PriorityOrder(by="ana", at=world.now, priority=100)
    world.calm.queue.orders.change_job(JOB_KEY, lambda _now: JobOrders(priority=urgent))
    world.other_gives_back()
    assert set(world.calm.queue.tick().ledger.leases) == {JOB_KEY}


def test_a_drained_pool_admits_nobody_until_it_is_opened(world: World) -> None:
    world.calm.queue.orders.change_pool(POOL, lambda _now: PoolOrders(drain=order(world)))
    world.other_gives_back()
    tick = world.calm.queue.tick()
    assert tick.ledger.leases == {}
    assert "drained" in tick.reason(JOB_KEY)
    world.calm.queue.orders.change_pool(POOL, lambda _now: PoolOrders())
    assert set(world.calm.queue.tick().ledger.leases) == {JOB_KEY}


def test_an_object_that_is_no_order_stops_nobody_and_is_reported(world: World) -> None:
    world.calm.storage.write_bytes(naming.job_order_uri(SETTINGS.work, JOB_KEY), b'{"kind": "?"}', generation=None)
    world.other_gives_back()
    assert set(world.calm.queue.tick().ledger.leases) == {JOB_KEY}
    assert any("left alone" in line for line in world.calm.queue.unread)


def test_the_reason_of_one_that_waits_names_who_holds_the_gpus(world: World) -> None:
    reason = world.calm.queue.tick().reason(JOB_KEY)
    assert f"needs 2 x {POOL}, 0 of 2 are free ({OTHER_KEY} holds 2)" in reason
    assert "probably starts in" in reason


def test_the_history_tells_of_every_order_that_no_longer_stands(world: World) -> None:
    urgent = PriorityOrder(by="ana", at=world.now, priority=100)
    orders = JobOrders().ordered("preempt", order(world, "a demonstration")).ordered("priority", urgent)
    asked = orders.left()
    assert (asked.preempt, asked.priority) == (None, urgent)
    assert [line.partition(",")[0] for line in asked.history] == ["preempt by ana"]
    assert asked.left() == asked
    released = asked.released(order(world))
    assert released == JobOrders(history=released.history)
    assert [line.partition(",")[0] for line in released.history] == [
        "preempt by ana",
        "priority by ana",
        "released by ana",
    ]


def test_the_history_of_a_pool_tells_who_drained_it(world: World) -> None:
    twice = PoolOrders().drained(order(world, "repairs")).drained(order(world, "more repairs"))
    assert twice.drain == order(world, "more repairs")
    assert [line.endswith("repairs") for line in twice.history] == [True]
    assert len(twice.released(order(world)).history) == 3
