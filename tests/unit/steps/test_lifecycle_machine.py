"""Several processes reconcile one job key while replies are lost, lists lag, processes die and people interfere."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.unit.steps.lifecycle_model.actor import Actor, Fate
from tests.unit.steps.lifecycle_model.judge import Judge
from tests.unit.steps.lifecycle_model.model_vertex import ERRORS, LIVE_STATES, ModelJob
from tests.unit.steps.lifecycle_model.world import World

from trainops.gcp.vertex import Jobs
from trainops.policy.lifecycle import Action, Job, Lease, next_action
from trainops.policy.record import Candidate, Record
from trainops.steps import run as run_module
from trainops.steps.observed_job import read_job
from trainops.steps.record_store import RecordStore
from trainops.steps.run import Run

MOST_ACTORS = 3
PASSING = [1, 10, 40, 95, 130, 400, 1000, 3 * 3600, 9 * 3600]
"""Seconds: within and past the create's deadline, the grace of a vanished job, a reservation, and the run's limits."""

FATES = [Fate.DONE, Fate.NOT_DONE, Fate.REPLY_LOST, Fate.SENT_AGAIN, Fate.CRASH_BEFORE, Fate.CRASH_AFTER]
FATES_OF_CREATE = [Fate.NOT_SENT, Fate.NO_QUOTA, Fate.REFUSED, Fate.FORBIDDEN, Fate.ARRIVES_LATE, *FATES]
WHICH = st.integers(0, 2)


class Lifecycle(RuleBasedStateMachine):
    """What may happen to a job key."""

    @initialize(
        gpus=st.sampled_from([0, 2]), lag=st.sampled_from([0, 5, 20]), deadlines=st.booleans(),
        preemptible=st.booleans(), elsewhere=st.booleans(),
    )  # fmt: skip
    def a_task_starts(self, gpus: int, lag: int, deadlines: bool, preemptible: bool, elsewhere: bool) -> None:
        self.world = World(gpus, timedelta(seconds=lag), deadlines, preemptible, elsewhere)
        self.judge = Judge(self.world)
        self.actors: list[Actor] = []
        self._start(self.world.task())

    @precondition(lambda self: self.actors)
    @rule(which=WHICH, calls=st.integers(1, 30), fate=st.sampled_from(FATES))
    def a_process_goes_on(self, which: int, calls: int, fate: Fate) -> None:
        self._go(self._actor(which), calls, fate)

    @precondition(lambda self: self.actors)
    @rule(which=WHICH, fate=st.sampled_from(FATES_OF_CREATE))
    def a_process_goes_on_through_its_create(self, which: int, fate: Fate) -> None:
        actor = self._actor(which)
        self._go_to_create(actor)
        self._go(actor, 1, fate)

    @precondition(lambda self: self.actors)
    @rule(which=WHICH)
    def a_process_goes_on_up_to_its_create(self, which: int) -> None:
        self._go_to_create(self._actor(which))

    @precondition(lambda self: self.actors)
    @rule(which=WHICH)
    def a_process_comes_to_its_end(self, which: int) -> None:
        self._go(self._actor(which), 300, Fate.DONE)

    @precondition(lambda self: self._room())
    @rule()
    def somebody_looks(self) -> None:
        self._start(self.world.look())

    @precondition(lambda self: self._room() and self.world.record is not None)
    @rule()
    def somebody_follows_those_who_leave(self) -> None:
        self._start(self.world.follow())

    @precondition(lambda self: self._room() and all(actor.name != "task" for actor in self.actors))
    @rule()
    def airflow_retries(self) -> None:
        self.world.next_try()
        self._start(self.world.task())

    @precondition(lambda self: self._room() and self.world.existing_record.verdict is not None)
    @rule()
    def airflow_retries_the_task_that_waits(self) -> None:
        self._start(self.world.sensor_retry())

    @precondition(lambda self: self._room())
    @rule(gpus=st.sampled_from([None, 0, 1, 2]))
    def a_person_clears(self, gpus: int | None) -> None:
        self.world.next_try(cleared=True, gpus=gpus)
        self._start(self.world.task())

    @precondition(lambda self: self._room())
    @rule()
    def the_task_is_killed(self) -> None:
        generation = self.world.existing_record.generation
        self.judge.ordered.add(generation)
        self._start(self.world.kill(generation))

    @precondition(lambda self: self._room())
    @rule()
    def the_run_is_ended(self) -> None:
        self._start(self.world.end())

    @rule(seconds=st.sampled_from(PASSING))
    def time_passes(self, seconds: int) -> None:
        self.world.now += timedelta(seconds=seconds)

    @precondition(lambda self: self._live())
    @rule(which=WHICH, state=st.sampled_from(LIVE_STATES))
    def a_job_moves(self, which: int, state: str) -> None:
        job = self._job(which)
        if job.state != "CANCELLING":  # which a job leaves only for an end
            self.world.cloud.move(job, state)

    @precondition(lambda self: self._live())
    @rule(which=WHICH, how=st.sampled_from(["SUCCEEDED", "EXPIRED", "PARTIALLY_SUCCEEDED", *ERRORS]))
    def a_job_ends(self, which: int, how: str) -> None:
        self.world.cloud.end(self._job(which), how)

    @precondition(lambda self: self._live())
    @rule(which=WHICH)
    def a_job_makes_room_for_another_run(self, which: int) -> None:
        self.world.preempted(self._job(which))

    @precondition(lambda self: self._live())
    @rule(which=WHICH)
    def a_cancel_is_done(self, which: int) -> None:
        job = self._job(which)
        if job.state == "CANCELLING":
            self.world.cloud.move(job, "CANCELLED")

    @precondition(lambda self: self._live())
    @rule(which=WHICH, how=st.sampled_from(["CANCELLING", "CANCELLED", "deleted"]))
    def a_person_cancels_or_deletes_a_job(self, which: int, how: str) -> None:
        self.world.cloud.meddle(self._job(which), how)

    @precondition(lambda self: self.world.cloud.on_their_way)
    @rule()
    def a_create_arrives_late(self) -> None:
        self.world.cloud.arrive()

    @precondition(lambda self: self.world.record is not None)
    @rule(takes=st.booleans(), urgent=st.booleans())
    def another_run_takes_or_gives_back_gpus(self, takes: bool, urgent: bool) -> None:
        if takes:
            self.world.other_takes_gpus(urgent=urgent)
        else:
            self.world.other_gives_back()

    @invariant()
    def nothing_is_wrong(self) -> None:
        record = self.world.record
        if record is not None and any(actor.name == "end_run" for actor in self.actors):
            self.judge.ordered.add(record.generation)
        self.judge.check_verdict()
        assert not self.judge.wrong, self.judge.wrong

    def teardown(self) -> None:
        """Faults stop; everybody keeps looking, time passes, and jobs come to their ends."""
        if not hasattr(self, "world"):
            return
        for actor in [*self.actors]:
            self._go(actor, 1, Fate.CRASH_BEFORE)
        if self.judge.wrong or self.world.record is None:
            return
        while self.world.cloud.on_their_way:
            self.world.cloud.arrive()
        self.world.other_gives_back()
        self._settle()
        self.judge.check_verdict()
        self.judge.check_quiet()
        assert not self.judge.wrong, self.judge.wrong

    def _settle(self) -> None:
        for _ in range(100):
            for job in self._live():
                self.world.cloud.end(job, "CANCELLED" if job.state == "CANCELLING" else "SUCCEEDED")
            self.world.now += timedelta(seconds=100)
            record = self.world.existing_record
            actor = self.world.look()
            self._start(actor)
            self._go(actor, 1000, Fate.DONE)
            if record.verdict is not None and not self._live():
                return

    def _start(self, actor: Actor) -> None:
        self.actors.append(actor)
        actor.known = self.world.cloud.listed()

    def _go_to_create(self, actor: Actor) -> None:
        while not actor.ended and actor.call not in {"create", "pause"}:
            actor.go()
        self._note_end(actor)

    def _go(self, actor: Actor, calls: int, fate: Fate) -> None:
        for left in reversed(range(calls)):
            if not actor.ended:
                actor.go(fate if left == 0 else Fate.DONE)
        self._note_end(actor)

    def _note_end(self, actor: Actor) -> None:
        if actor.ended and actor in self.actors:
            self.actors.remove(actor)
            self.judge.check_actor(actor)

    def _room(self) -> bool:
        return self.world.record is not None and len(self.actors) < MOST_ACTORS

    def _actor(self, which: int) -> Actor:
        return self.actors[which % len(self.actors)]

    def _live(self) -> list[ModelJob]:
        return [job for job in self.world.cloud.jobs if job.live]

    def _job(self, which: int) -> ModelJob:
        live = self._live()
        return live[which % len(live)]


PROFILE: dict[str, Any] = {
    "deadline": None, "suppress_health_check": list(HealthCheck), "database": None, "derandomize": True,
}  # fmt: skip


def test_a_run_is_never_paid_for_twice_never_left_running_and_never_lied_about() -> None:
    run_state_machine_as_test(Lifecycle, settings=settings(max_examples=120, stateful_step_count=20, **PROFILE))


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_a_run_is_never_paid_for_twice_in_thousands_of_histories() -> None:
    run_state_machine_as_test(Lifecycle, settings=settings(max_examples=5000, stateful_step_count=40, **PROFILE))


Change = Callable[[Record | None], Record | None]


def no_intent(store: RecordStore, seen: Record, after: Record) -> Record | None:
    """The intent is not written before the create."""
    if after.story[-1].what.startswith("intends"):
        return after
    return after if store.change(lambda now: after if now == seen else None) is after else None


def any_record(store: RecordStore, _seen: Record, after: Record) -> Record | None:
    """A decision is written onto whatever the record has become."""
    return store.change(lambda _now: after)


def no_generation_match(store: RecordStore, changed: Change) -> Record | None:
    """The record is written whichever generation of the object is there."""
    found = store.read()
    before = found[0] if found is not None else None
    after = changed(before)
    if after is not None and after != before:
        store.storage.write_json(store.uri, after.to_json(), generation=None)
    return after or before


def no_list(run: Run, record: Record, _listed: Jobs) -> tuple[Job, ...]:
    """After an unclear create nobody looks for the job by its label."""
    name = record.attempt and record.attempt.job_name
    return (read_job(run.services.vertex(record.region).get(name)),) if name else ()


def unconfirmed(record: Record, jobs: tuple[Job, ...], lease: Lease, now: datetime) -> Action:
    """A cancel counts as done once it was asked for."""
    action = next_action(record, jobs, lease, now)
    if record.cancel is not None and action.what == "wait":
        return Action(what="finish", why=record.cancel.why, verdict=record.cancel.verdict)
    return action


def no_marker(_run: Run, _record: Record, job: Job) -> Job:
    """Nobody asks whether a job that ended well made room for another run."""
    return job


def first_choice(record: Record) -> Candidate:
    """Jobs and leases are those of the first choice, whichever one the attempt is meant for."""
    return record.candidates[0]


FAULTS = [
    (RecordStore, "swap", no_intent),
    (RecordStore, "swap", any_record),
    # Found after tens or thousands of histories; `test_run.py` has the one that matters.
    pytest.param(RecordStore, "change", no_generation_match, marks=pytest.mark.full),
    (Run, "_jobs", no_list),
    (run_module, "next_action", unconfirmed),
    (Run, "_with_marker", no_marker),
    pytest.param(Record, "machines", property(first_choice), id="machines-first_choice"),
    pytest.param(run_module, "LATEST_SEND", timedelta(days=1), marks=pytest.mark.full),
]


@pytest.mark.parametrize(("where", "name", "fault"), FAULTS, ids=lambda item: getattr(item, "__name__", str(item)))
def test_the_model_finds_a_fault(where: Any, name: str, fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(where, name, fault)
    options = {**PROFILE, "phases": [Phase.generate], "report_multiple_bugs": False}
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Lifecycle, settings=settings(max_examples=2000, stateful_step_count=20, **options))
