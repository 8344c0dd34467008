"""Judges what happened by the model's own journal: jobs of the cloud, versions of the record, orders given."""

from __future__ import annotations

from typing import Any

from tests.unit.steps.lifecycle_model.actor import Actor, Crash
from tests.unit.steps.lifecycle_model.model_vertex import ModelJob
from tests.unit.steps.lifecycle_model.world import JOB_KEY, URI, World

from trainops.errors import TransientError
from trainops.policy.record import Attempt, Record, Verdict

KILLING = {Verdict.CANCELLED, Verdict.DEADLINE}


class Judge:
    """Listens to creates and to writes of the record, and collects what must not be."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.wrong: list[str] = []
        self.ordered: set[int] = set()
        """Generations whose end was ordered."""
        self.unclear = False
        """True once a create arrived after its caller had given up."""
        self.before: Record | None = None
        world.objects.told = self._written
        world.cloud.created = self._created

    def require(self, holds: bool, what: str) -> None:
        """Note `what` unless it holds."""
        if not holds:
            self.wrong.append(what)

    def _created(self, job: ModelJob) -> None:
        self.unclear = self.unclear or job.late
        record = self.world.record
        assert record is not None
        same = [item for item in self.world.cloud.jobs if item.generation == job.generation]
        # One that was deleted before anybody saw it cannot be known.
        twins = [item for item in same if item.attempt == job.attempt and not item.deleted]
        self.require(self.unclear or not twins, f"a second create of attempt {job.attempt} took effect")
        bound = {attempt.job_name for attempt in record.attempts}
        rivals = [item for item in same if item.live and not item.cancel_asked and item.name in bound]
        self.require(self.unclear or not rivals, f"{job.name} was created while {[item.name for item in rivals]} lives")
        if record.generation == job.generation and not self.unclear:
            self.require(record.verdict is None, f"{job.name} was created for a generation that had ended")

    def _written(self, uri: str, value: Any) -> None:
        if uri != URI:
            return
        after, before = Record.model_validate(value), self.before
        for attempt in after.attempts:
            self._check_adopted(after, attempt)
        if before is not None and after.generation == before.generation:
            self.require(after.story[: len(before.story)] == before.story, "the story lost a line")
        elif before is not None:
            kept = after.earlier[-1]["story"] if after.earlier else None
            self.require(kept == before.to_json()["story"], "the story of a generation was lost")
        self.before = after

    def _check_adopted(self, record: Record, attempt: Attempt) -> None:
        if attempt.job_name is None:
            return
        job = self._job(attempt.job_name)
        own = (job.generation, job.attempt) == (record.generation, attempt.number)
        place = record.candidates[attempt.candidate].region
        self.require(job.region == place, f"{job.name} was adopted by attempt {attempt.number}, meant for {place}")
        self.require(own, f"{job.name} of generation {job.generation} was adopted by generation {record.generation}")

    def check_actor(self, actor: Actor) -> None:
        """An actor has ended: well, by a fault that was injected, or by one of the product.

        :raises BaseException: what it died of, when nothing that was injected explains it.
        """
        if isinstance(actor.error, (Crash, TransientError)):
            return
        if actor.error is not None:
            raise actor.error
        looked = actor.name != "follower" or JOB_KEY in actor.result  # it looks at those alone that were to leave
        if not actor.faulty and looked:
            self._check_look(actor, actor.known)

    def _check_look(self, actor: Actor, known: set[str]) -> None:
        """After a look in which nothing went wrong: of the jobs known before it, one at most still runs."""
        record = self.world.record
        assert record is not None
        running = [job for job in self.world.cloud.jobs if job.live and not job.cancel_asked and job.name in known]
        self.require(len(running) <= 1, f"{actor.name} left {[job.name for job in running]} running")
        if getattr(actor.result, "what", None) == "finish" and record.verdict is not None:
            live = [job.name for job in self.world.cloud.jobs if job.live and job.name in known]
            self.require(not live, f"{actor.name} took the run for finished while {live} lives")
        kept = [
            job.name
            for job in running
            if record.accelerators and record.attempt and job.name == record.attempt.job_name
        ]
        pools = record.machines.gpus
        held = self.world.leases().get(JOB_KEY)
        self.require(not kept or held == pools, f"{kept} uses {pools}, and its lease is of {held}")

    def check_verdict(self) -> None:
        """Whatever the record says of ended attempts and of the generation is true."""
        record = self.world.record
        if record is None:
            return
        for attempt in record.attempts:
            self._check_attempt(record, attempt)
        if record.verdict is Verdict.SUCCEEDED:
            last = record.attempt
            job = self._job(last.job_name) if last is not None and last.job_name is not None else None
            true = job is not None and job.state == "SUCCEEDED" and not job.preempted
            self.require(true, "the record says succeeded, and no job of the last attempt did")
        if record.verdict in KILLING:
            self._check_killed(record)

    def _check_attempt(self, record: Record, attempt: Attempt) -> None:
        if attempt.job_name is None or attempt.verdict is None or record.generation in self.ordered:
            return
        job = self._job(attempt.job_name)
        if job.state == "SUCCEEDED" and not job.cancel_asked and not job.deleted:
            true = {Verdict.PREEMPTED, Verdict.DEADLINE} if job.preempted else {Verdict.SUCCEEDED}
            self.require(attempt.verdict in true, f"{job.name} succeeded, told as {attempt.verdict}")
        # One that came to be after its reservation had passed is cancelled next, and before any other attempt.
        too_late = attempt.verdict is Verdict.QUOTA and attempt == record.attempt
        self.require(
            not job.live or job.cancel_asked or attempt.verdict in KILLING or too_late,
            f"{job.name} lives, told as {attempt.verdict}",
        )

    def _check_killed(self, record: Record) -> None:
        by_us = record.generation in self.ordered
        limits = record.limits
        passed = any(limit is not None and self.world.now > limit for limit in (limits.submit_by, limits.finish_by))
        name = record.attempt.job_name if record.attempt else None
        outside = name is not None and self._job(name).by_somebody
        wanted = passed if record.verdict is Verdict.DEADLINE else by_us or outside
        self.require(wanted, f"the record says {record.verdict}, and nobody ordered that")

    def check_quiet(self) -> None:
        """At the end nothing is left, and the record explains every job."""
        record = self.world.record
        if record is None:
            return
        self.require(record.verdict is not None, f"the generation never ended: {record.story[-1]}")
        self.require(not [job for job in self.world.cloud.jobs if job.live], "a job is left running")
        self.require(JOB_KEY not in {*self.world.leases(), *self.world.requests()}, "a lease or a request is left")
        told = record.model_dump_json()
        for job in self.world.cloud.jobs:  # one that was deleted may never have been seen
            self.require(job.deleted or job.name in told, f"the record does not explain {job.name}")

    def _job(self, name: str) -> ModelJob:
        return next(job for job in self.world.cloud.jobs if job.name == name)
