"""A run makes room for another one: told, saved, gone, queued again, resumed."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from tests.unit.steps.lifecycle_model.model_vertex import ModelJob
from tests.unit.steps.lifecycle_model.world import JOB_KEY, OTHER_KEY, SETTINGS, World, job_request

from trainops import naming
from trainops.config.gpu_pools import GpuPools
from trainops.policy.record import Verdict
from trainops.steps.gpu_queue.orders import JobOrders, Order
from trainops.steps.preemption import follow_leaving

HOURS = timedelta(hours=2)
OTHER_RECORD = "gs://my-bucket/other.json"


def a_running_job(*, preemptible: bool | None = True) -> tuple[World, ModelJob]:
    """A job that holds the whole pool, for two hours already."""
    world = World(2, timedelta(0), deadlines=False)
    world.request = job_request(2, deadlines=False, preemptible=preemptible)
    world.task().to_the_end()
    (job,) = world.cloud.jobs
    world.cloud.move(job, "RUNNING")
    world.now += HOURS
    return world, job


def another_asks(world: World, priority: int = 50) -> None:
    """Another job key asks for the whole pool, and the queue is looked at."""
    other = world.existing_record.model_copy(
        update={"job_key": OTHER_KEY, "priority": priority, "attempts": (), "accelerators": {"NVIDIA_TESLA_T4": 2}}
    )
    world.calm.queue.enqueue(other, OTHER_RECORD)
    world.calm.queue.tick()


def followed(world: World) -> list[str]:
    """The job keys whose GPUs came free, after somebody else looked at those that are to leave."""
    ledger, _ = world.calm.queue.snapshot()
    return follow_leaving(world.calm, ledger, actor="another run", say=lambda _line: None)


def order_to(job: ModelJob) -> str:
    """Where the job's trainer looks for the order to leave."""
    return f"{job.control}/preempt"


def test_a_job_that_is_in_the_way_is_told_in_its_record_and_in_its_control_folder() -> None:
    world, job = a_running_job()
    another_asks(world)
    leave = world.existing_record.attempts[0].leave
    assert leave is not None
    assert OTHER_KEY in leave.why
    assert json.loads(world.objects.blobs[order_to(job)].data)["why"] == leave.why
    assert "asks" in world.existing_record.story[-1].what


def test_it_saves_and_leaves_and_the_other_one_is_admitted_in_the_same_look() -> None:
    world, job = a_running_job()
    another_asks(world)
    assert followed(world) == []
    world.preempted(job)
    assert followed(world) == [JOB_KEY]
    assert world.existing_record.attempts[0].verdict is Verdict.PREEMPTED
    world.calm.queue.tick()
    assert set(world.leases()) == {OTHER_KEY}


def test_it_waits_again_with_its_age_and_goes_on_when_there_is_room() -> None:
    world, job = a_running_job()
    arrived = {item.job_key: item.arrived for item in world.calm.queue.snapshot()[1]}[JOB_KEY]
    another_asks(world)
    world.preempted(job)
    followed(world)
    world.calm.queue.tick()
    assert world.look().to_the_end().what == "wait"
    (again,) = [item for item in world.calm.queue.snapshot()[1] if item.job_key == JOB_KEY]
    assert (again.arrived, again.preemptions) == (arrived, 1)
    assert again.ran_seconds == pytest.approx(HOURS.total_seconds(), abs=60)
    world.other_gives_back()
    world.look().to_the_end()
    assert [item.verdict for item in world.existing_record.attempts] == [Verdict.PREEMPTED, None]
    assert len(world.cloud.jobs) == 2


def test_one_that_has_not_left_when_its_grace_is_over_is_cancelled_and_goes_on_later() -> None:
    world, job = a_running_job()
    another_asks(world)
    world.now += timedelta(minutes=11)
    followed(world)
    assert job.state == "CANCELLING"
    world.cloud.move(job, "CANCELLED")
    assert followed(world) == [JOB_KEY]
    (attempt,) = world.existing_record.attempts
    assert attempt.verdict is Verdict.PREEMPTED
    assert world.existing_record.verdict is None


def test_one_that_a_person_cancels_in_its_grace_has_ended() -> None:
    world, job = a_running_job()
    another_asks(world)
    world.cloud.end(job, "CANCELLED")
    followed(world)
    assert world.existing_record.verdict is Verdict.CANCELLED


def test_one_that_ends_well_in_its_grace_has_succeeded() -> None:
    world, job = a_running_job()
    another_asks(world)
    world.cloud.end(job, "SUCCEEDED")
    followed(world)
    assert world.existing_record.verdict is Verdict.SUCCEEDED
    assert world.leases() == {}


def test_who_only_follows_submits_nothing() -> None:
    world, job = a_running_job()
    another_asks(world)
    world.preempted(job)
    world.calm.queue.release(OTHER_KEY)
    for _ in range(3):
        followed(world)
        world.calm.queue.tick()
    assert len(world.cloud.jobs) == 1


@pytest.mark.parametrize("priority", [50, 100])
def test_a_job_without_the_protocol_is_never_asked(priority: int) -> None:
    world, job = a_running_job(preemptible=None)
    another_asks(world, priority)
    assert world.existing_record.attempts[0].leave is None
    assert order_to(job) not in world.objects.blobs


def test_nobody_is_asked_where_the_pools_file_says_so() -> None:
    world, _ = a_running_job()
    pools = world.calm.queue.pools
    policy = pools.policy.model_copy(update={"preemption": False})
    world.calm.queue.pools = GpuPools(pools=pools.pools, policy=policy)
    another_asks(world, 100)
    assert world.existing_record.attempts[0].leave is None


def test_a_person_has_a_job_make_room_once_and_the_order_is_used_up() -> None:
    world, job = a_running_job()
    order = Order(by="ana", at=world.now, why="it reads the wrong data")
    world.calm.queue.orders.change_job(JOB_KEY, lambda _now: JobOrders(preempt=order))
    world.look().to_the_end()
    world.calm.queue.tick()
    leave = world.existing_record.attempts[0].leave
    assert leave is not None
    assert "ana" in leave.why
    assert "wrong data" in leave.why
    orders, _ = world.calm.queue.orders.all()
    assert orders[JOB_KEY].preempt is None
    world.preempted(job)
    world.look().to_the_end()
    assert len(world.cloud.jobs) == 2


def test_two_processes_that_tell_at_once_tell_once() -> None:
    world, _ = a_running_job()
    another_asks(world)
    told = world.existing_record.story
    World.leases(world)
    slow = type(world.calm.queue)(world.calm.storage, SETTINGS.work, world.calm.queue.pools)
    slow.tick()
    assert world.existing_record.story == told


def test_the_orders_of_a_job_that_has_ended_are_gone() -> None:
    world, job = a_running_job()
    order = Order(by="ana", at=world.now)
    world.calm.queue.orders.change_job(JOB_KEY, lambda _now: JobOrders(hold=order))
    world.cloud.end(job, "SUCCEEDED")
    world.look().to_the_end()
    assert naming.job_order_uri(SETTINGS.work, JOB_KEY) not in world.objects.blobs
