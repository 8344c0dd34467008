"""Moments at which two processes, or a crash, once did harm: what the lifecycle machine found, shrunk and named."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.unit.steps.lifecycle_model.actor import Fate
from tests.unit.steps.lifecycle_model.model_vertex import ModelJob
from tests.unit.steps.lifecycle_model.world import JOB_KEY, URI, World

from trainops.policy.lifecycle import VANISH_GRACE
from trainops.policy.record import Verdict
from trainops.steps.run import CREATE_TIME, SEND_AGAIN

WRITES = f"write {URI}"
SOON = timedelta(seconds=1)
NOT_AT_ONCE = timedelta(minutes=10)


def a_world(*, gpus: int = 0, deadlines: bool = False) -> World:
    return World(gpus, timedelta(0), deadlines)


def submitted(world: World) -> ModelJob:
    """Its first job, bound and running."""
    world.task().to_the_end()
    (job,) = world.cloud.jobs
    world.cloud.move(job, "RUNNING")
    return job


def cleared(world: World) -> None:
    """A person clears the task, and its new try submits."""
    world.next_try(cleared=True)
    world.task().to_the_end()


def look(world: World, after: timedelta = SOON) -> str:
    world.now += after
    return str(world.look().to_the_end().what)


def test_an_intent_for_a_generation_that_was_cleared_meanwhile_is_not_written_into_the_next_one() -> None:
    world = a_world()
    first = world.task()
    first.up_to(WRITES)  # it opens the generation
    first.go()
    first.up_to(WRITES)  # its intent
    world.next_try(cleared=True)
    clear = world.task()
    clear.up_to(WRITES)
    clear.go()
    first.to_the_end()
    clear.to_the_end()
    assert [job.generation for job in world.cloud.jobs] == [2]
    assert world.existing_record.attempts[0].job_name == world.cloud.jobs[0].name


def test_the_order_of_a_kill_is_not_written_over_what_was_done_since_the_record_was_read() -> None:
    world = a_world()
    submitted(world)
    kill = world.kill(1)
    kill.up_to(WRITES)
    cleared(world)
    kill.to_the_end()
    assert world.existing_record.generation == 2
    assert world.existing_record.cancel is None


def test_the_end_of_an_attempt_is_not_written_into_the_generation_after_it() -> None:
    world = a_world()
    world.cloud.end(submitted(world), "stockout")
    slow = world.look()
    slow.up_to(WRITES)
    cleared(world)
    slow.to_the_end()
    assert world.existing_record.generation == 2
    assert world.existing_record.attempts[0].verdict is None
    assert world.cloud.jobs[1].live


def test_a_refused_create_of_a_cleared_generation_does_not_close_the_next_one() -> None:
    world = a_world()
    first = world.task()
    first.up_to("create")
    cleared(world)
    first.go(Fate.REFUSED)
    first.to_the_end()
    assert world.existing_record.verdict is None
    assert world.cloud.jobs[0].live


def test_a_failure_that_was_seen_before_a_retry_opened_the_generation_again_does_not_close_it() -> None:
    world = a_world()
    world.cloud.end(submitted(world), "user")
    slow = world.look()
    slow.up_to(WRITES)
    assert look(world) == "finish"
    world.next_try()
    world.task().to_the_end()
    slow.to_the_end()
    assert world.existing_record.verdict is None
    assert world.cloud.jobs[1].live
    assert not world.cloud.jobs[1].cancel_asked


def test_a_deadline_that_passed_for_one_generation_does_not_end_the_next_one() -> None:
    world = a_world(deadlines=True)
    submitted(world)
    world.now += timedelta(hours=9)
    slow = world.look()
    slow.up_to(WRITES)
    cleared(world)
    slow.to_the_end()
    assert world.existing_record.cancel is None


def test_a_kill_that_meant_one_generation_does_not_end_the_next_one() -> None:
    world = a_world()
    submitted(world)
    kill = world.kill(1)
    kill.up_to(f"read {URI}")
    kill.go()
    cleared(world)
    kill.to_the_end()
    assert world.existing_record.generation == 2
    assert world.existing_record.cancel is None


def test_a_process_that_was_held_up_after_its_intent_does_not_create_any_more() -> None:
    world = a_world()
    slow = world.task()
    slow.up_to("write gs://my-bucket/runs/exp/exp-run/g1/submit_training/a1/job.json")
    world.now += timedelta(minutes=5)
    world.look().to_the_end()
    slow.to_the_end()
    assert len(world.cloud.jobs) == 1


@pytest.mark.parametrize("sent", [False, True])
def test_a_create_that_was_certainly_not_sent_is_sent_soon_and_an_unclear_one_after_its_deadline(sent: bool) -> None:
    world = a_world()
    first = world.task()
    first.up_to("create")
    first.go(Fate.NOT_DONE if sent else Fate.NOT_SENT)
    assert first.to_the_end().what == "wait"
    look(world, after=SEND_AGAIN + SOON)
    assert len(world.cloud.jobs) == (0 if sent else 1)
    look(world, after=CREATE_TIME)
    assert len(world.cloud.jobs) == 1


def test_a_create_that_is_withdrawn_late_leaves_that_of_another_process_alone() -> None:
    world = a_world()
    slow = world.task()
    slow.up_to("create")
    world.now += CREATE_TIME + SOON
    other = world.look()
    other.up_to("create")
    slow.go(Fate.NOT_SENT)
    slow.to_the_end()
    assert world.existing_record.attempts[0].create_deadline == world.now + CREATE_TIME
    other.to_the_end()
    look(world)
    assert len(world.cloud.jobs) == 1


def test_a_refusal_closes_the_generation_in_the_same_write_that_ends_its_attempt() -> None:
    world = a_world()
    task = world.task()
    task.up_to("create")
    task.go(Fate.REFUSED)
    task.up_to(WRITES)
    task.go(Fate.CRASH_AFTER)
    assert look(world) == "finish"
    assert world.existing_record.verdict is Verdict.FAILED
    assert world.cloud.jobs == []


@pytest.mark.parametrize("how", ["deleted", "SUCCEEDED"])
def test_a_cancel_of_a_job_that_is_gone_by_then_is_no_error(how: str) -> None:
    world = a_world()
    job = submitted(world)
    world.next_try(cleared=True)
    task = world.task()
    task.up_to("cancel")
    if how == "deleted":
        world.cloud.meddle(job, how)
    else:
        world.cloud.end(job, how)
    task.to_the_end()
    assert world.existing_record.attempts[0].job_name == world.cloud.jobs[1].name


def test_a_run_has_not_ended_while_any_job_of_it_is_still_being_cancelled() -> None:
    world = a_world()
    submitted(world)
    world.kill(1).to_the_end()
    (job,) = world.cloud.jobs
    assert look(world) == "wait"
    world.cloud.submit(job.region, job.body, late=True)  # a create that arrives after its attempt was bound
    world.cloud.end(job, "CANCELLED")
    assert look(world) == "wait"
    assert world.existing_record.verdict is None
    world.cloud.end(world.cloud.jobs[1], "CANCELLED")
    assert look(world) == "finish"


def test_a_bound_job_that_a_list_leaves_out_is_asked_for_by_its_name() -> None:
    world = a_world()
    job = submitted(world)
    job.seen_as.clear()
    assert look(world, VANISH_GRACE + SOON) == "wait"
    assert world.existing_record.attempts[0].verdict is None
    assert len(world.cloud.jobs) == 1


def test_a_crash_between_record_and_ledger_does_not_give_the_gpus_of_a_running_job_away() -> None:
    world = a_world(gpus=2)
    task = world.task()
    task.up_to("create")
    task.go()
    task.up_to(WRITES)
    task.go(Fate.CRASH_AFTER)  # bound in the record, and only reserved in the ledger
    look(world, NOT_AT_ONCE)
    world.now += NOT_AT_ONCE
    world.other_takes_gpus()
    assert set(world.leases()) == {JOB_KEY}


def test_a_cleared_generation_gives_back_the_lease_of_the_one_before_and_asks_for_what_it_needs() -> None:
    world = a_world(gpus=2)
    job = submitted(world)
    world.request = a_world(gpus=1).request
    cleared(world)
    world.cloud.end(job, "CANCELLED")
    look(world)
    assert world.existing_record.attempts[0].job_name == world.cloud.jobs[1].name
    assert list(world.calm.queue.snapshot()[0].leases[JOB_KEY].gpus.values()) == [1]


def test_a_job_that_ended_before_anybody_knew_it_is_explained() -> None:
    world = a_world()
    task = world.task()
    task.up_to("create")
    task.go(Fate.CRASH_AFTER)
    (job,) = world.cloud.jobs
    world.cloud.end(job, "user")
    cleared(world)
    told = [line for line in world.existing_record.story if job.name in line.what]
    assert [line.what for line in told] == [f"found {job.name}"]


def test_a_cancel_whose_reply_was_lost_stands_in_the_story_once() -> None:
    world = a_world()
    job = submitted(world)
    kill = world.kill(1)
    kill.up_to("cancel")
    kill.go(Fate.REPLY_LOST)
    for _ in range(3):
        look(world)
    assert [line.what for line in world.existing_record.story].count(f"cancels {job.name}") == 1


def test_a_job_that_came_to_be_after_its_reservation_had_passed_is_cancelled_at_once() -> None:
    world = a_world(gpus=2)
    task = world.task()
    task.up_to("create")
    reservation_passes(world)
    task.to_the_end()
    (job,) = world.cloud.jobs
    assert job.cancel_asked
    (attempt,) = world.existing_record.attempts
    assert (attempt.number, attempt.verdict) == (1, Verdict.QUOTA)


def test_a_job_that_had_succeeded_when_it_was_found_is_a_success_though_its_reservation_had_passed() -> None:
    world = a_world(gpus=2)
    task = world.task()
    task.up_to("create")
    task.go(Fate.CRASH_AFTER)
    reservation_passes(world)
    world.cloud.end(world.cloud.jobs[0], "SUCCEEDED")
    assert look(world, SOON) == "finish"
    assert world.existing_record.verdict is Verdict.SUCCEEDED


def reservation_passes(world: World) -> None:
    """Its reservation passes, and another job key has the GPUs."""
    world.now += timedelta(minutes=11)
    world.other_takes_gpus(urgent=True)
    world.calm.queue.tick()
    assert set(world.leases()) == {"other-submit_training"}
