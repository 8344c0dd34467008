"""Reconcile a job key: observe, decide, act, one step at a time.

`Run.advance()` can be called by anyone (operator, sensor, trigger, teardown, housekeeping, a person), any number of
times, at any moment, also by several at once. What it knows it reads each time from the record, the job list and the
queue; what it decides comes from `policy.lifecycle.next_action`.
"""

from __future__ import annotations

import contextlib
import os
import socket
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from trainops import naming
from trainops.errors import (
    AccessError,
    CapacityError,
    NotFoundError,
    NotSentError,
    RequestRefused,
    ServiceError,
    TransientError,
)
from trainops.gcp.vertex import Jobs
from trainops.jobspec.hidden import hidden_job
from trainops.policy.failure import read_refusal, rule_of
from trainops.policy.lifecycle import TERMINAL, Action, Job, Lease, current_job, next_action
from trainops.policy.record import RESUMABLE, Attempt, CancelOrder, Record, Verdict
from trainops.steps.attempts import ended_attempts, late_attempts, usd_per_hour
from trainops.steps.observed_job import read_job
from trainops.steps.record_store import RecordStore
from trainops.steps.services import Services
from trainops.steps.start import attempt_body

CREATE_TIME = timedelta(seconds=120)
"""How long an intent keeps others from creating: sending, the client's timeout of 70 s, and 30 s that lists may lag."""

LATEST_SEND = timedelta(seconds=20)
"""A create is sent so soon after its intent or not at all, so that `CREATE_TIME` covers it."""

SEND_AGAIN = timedelta(seconds=5)
"""How long after a create that was not sent the next one is."""

STEPS_AT_ONCE = 25
"""Steps of one `advance` before it answers anyway; a start takes five."""

Say = Callable[[str], None]


class Run:
    """One job key, reconciled by one actor.

    :param services: the Google services.
    :param record_uri: where the record is.
    :param actor: who acts, as the record's story tells it.
    :param say: where progress goes, a line at a time.
    """

    def __init__(self, services: Services, record_uri: str, *, actor: str, say: Say = print) -> None:
        self.services = services
        self.store = RecordStore(services.storage, record_uri)
        self.actor = actor
        self.say = say
        self.writer = f"{actor}@{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self.observed: Job | None = None
        """The job of the current attempt as last seen."""
        self.by_name = False
        """True for who ends the job key though its jobs cannot be listed: those that the record names are looked at."""
        self.submits = True
        """False for who only follows what runs, on behalf of an owner who alone asks for GPUs and submits."""
        self.list_error: ServiceError | None = None
        """Why the jobs could not be listed at the last look."""

    def advance(self, listed: Jobs | None = None) -> Action:
        """Take steps until one answers wait or finish, and return that one.

        :param listed: all jobs of the job key, where somebody has just listed them. Believed once, and only when they
            tell that the current job has ended, which nothing changes any more.
        :raises ServiceError: what Google answered, when asking again may help or somebody must act.
        """
        for _ in range(STEPS_AT_ONCE):
            record = self.store.load()
            jobs = self._jobs(record, listed or [])
            listed = None
            self.observed = current_job(record, jobs)
            if self._explain(record, jobs):
                continue
            action = next_action(record, jobs, self._lease(record), self.services.now())
            if action.what == "wait" or (action.what == "finish" and self._finish(record, action)):
                return action
            if not self.submits and action.what in {"enqueue", "submit"}:
                return Action(what="wait", why="its owner goes on with it")
            if action.what != "finish":
                self._act(record, action)
        return Action(what="wait", why=f"{STEPS_AT_ONCE} steps were taken at once; the next look goes on")

    def cancel(self, why: str, generation: int | None = None) -> None:
        """Order the generation ended; `advance` then follows it until that is confirmed.

        :param generation: the one that is meant; a later one is left alone. None means whichever is current.
        """

        def ordered(record: Record | None) -> Record | None:
            if record is None or generation not in {None, record.generation}:
                return None
            if record.verdict is not None or record.cancel is not None:
                return None
            return self._ordered(record, why, Verdict.CANCELLED)

        self.store.change(ordered)

    def _jobs(self, record: Record, listed: Jobs) -> tuple[Job, ...]:
        try:
            known = _tells_the_end(record, listed)
            found = listed if known else [job for region in record.regions for job in self._list(record, region)]
            self.list_error = None
        except ServiceError as error:
            self.list_error = error
            if not self.by_name:
                raise
            found = self._named(record, error)
        jobs = [read_job(item) for item in (*found, *self._not_listed(record, found))]
        return tuple(self._with_marker(record, job) for job in jobs)

    def _list(self, record: Record, region: str) -> list[dict[str, Any]]:
        key = naming.label_value(record.job_key)
        return self.services.vertex(region).list(f'labels.job-key="{key}" AND labels.managed-by="{naming.MANAGED_BY}"')

    def _named(self, record: Record, refusal: ServiceError) -> list[dict[str, Any]]:
        """The jobs that the record names, each asked for.

        :raises ServiceError: a job cannot be asked for, or there may be one that nobody knows by its name.
        """
        if record.unclear:
            raise refusal
        found = []
        for name in record.job_names:
            try:
                found.append(self.services.vertex_of(name).get(name))
            except NotFoundError:
                if isinstance(refusal, NotFoundError):  # then it says nothing of the job: the project may be another
                    raise
        return found

    def _not_listed(self, record: Record, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The bound job, asked for by its name when the list lacks it: a list may lag, and must not end an attempt."""
        attempt = record.attempt
        name = None if attempt is None or attempt.verdict is not None else attempt.job_name
        if name is None or any(job["name"] == name for job in found):
            return []
        try:
            return [self.services.vertex_of(name).get(name)]
        except NotFoundError:
            return []

    def _explain(self, record: Record, jobs: tuple[Job, ...]) -> bool:
        """Tell of jobs that ended before anybody knew them, as after an unclear create; False when there are none."""
        told = record
        for job in jobs:
            if not job.live and not record.names(job.name):
                why = f"{job.state}, of generation {job.generation}, attempt {job.attempt}; nobody saw it before"
                told = told.told(self.services.now(), self.actor, f"found {job.name}", why)
        if told is record:
            return False
        self.store.swap(record, told)
        return True

    def _with_marker(self, record: Record, job: Job) -> Job:
        """Add whether the trainer left its preemption marker, which only matters once a job succeeded."""
        attempt = record.attempt
        if job.state != "JOB_STATE_SUCCEEDED" or attempt is None or attempt.verdict is not None:
            return job
        marker = f"{naming.control_folder(record.folder, job.attempt)}/preempted"
        if job.generation != record.generation or not self.services.storage.exists(marker):
            return job
        return replace(job, preempted=True)

    def _lease(self, record: Record) -> Lease:
        if not record.accelerators or record.verdict is not None or record.cancel is not None:
            return Lease(state="none")
        attempt = record.attempt
        if attempt is not None and attempt.verdict is None and attempt.job_name is not None:
            if self.observed is not None and self.observed.live:
                self.services.queue.hold(record, self.store.uri, attempt.job_name)
            return Lease(state="bound")
        if not self.submits:
            return Lease(state="none")
        return self.services.queue.lease(record, self.store.uri)

    def _act(self, record: Record, action: Action) -> None:
        match action.what:
            case "enqueue":
                self._enqueue(record, action)
            case "submit":
                self._submit(record, action)
            case "bind":
                self._bind(record, action)
            case "cancel_job":
                self._cancel_job(record, action)
            case "order_cancel":
                self.store.swap(record, self._ordered(record, action.why, action.verdict or Verdict.CANCELLED))
            case "release":
                self.services.queue.free(record, self.store.uri)
            case _:
                self._end_attempt(record, action)

    def _enqueue(self, record: Record, action: Action) -> None:
        self.services.queue.enqueue(record, self.store.uri)
        choices = ", else ".join(str(item) for item in record.candidates)
        self.say(f"asked the GPU queue for {choices}: {action.why}")

    def _submit(self, record: Record, action: Action) -> None:
        """Write the intent, create, and let the next look at the list tell what really exists."""
        now = self.services.now()
        mine = Attempt(
            number=action.attempt, writer=self.writer, intent_at=now, create_deadline=now + CREATE_TIME,
            candidate=action.candidate, usd_per_hour=usd_per_hour(record.candidates[action.candidate]),
        )  # fmt: skip
        kept = tuple(item for item in record.attempts if item.number != action.attempt)
        what = f"intends attempt {action.attempt}"
        intent = self.store.swap(record, record.told(now, self.actor, what, action.why, attempts=(*kept, mine)))
        if intent is None:
            return
        if record.queued and not record.accelerators:  # the generation before asked for GPUs, and waits no longer
            self.services.queue.release(record.job_key)
        body = attempt_body(intent.machines.spec, record.folder, record.generation, action.attempt)
        sent = f"{naming.attempt_folder(record.folder, action.attempt)}/job.json"
        self.services.storage.write_json(sent, hidden_job(body), generation=None)
        if self.services.now() > now + LATEST_SEND:
            self._withdraw(intent, "the process was held up")
            return
        self._create(intent, action, body)

    def _create(self, intent: Record, action: Action, body: dict[str, Any]) -> None:
        try:
            job = self.services.vertex(intent.machines.region).create(body)
        except CapacityError as error:
            why = f"{error}; {rule_of(Verdict.QUOTA).next_step}"
            self._end_attempt(intent, replace(action, why=why, verdict=Verdict.QUOTA))
        except (RequestRefused, AccessError, NotFoundError) as error:
            refusal = read_refusal(error.status, str(error))
            why = f"{refusal.message}; {refusal.next_step}"
            self._end_attempt(intent, replace(action, why=why, verdict=refusal.verdict))
        except NotSentError as error:
            self._withdraw(intent, str(error))
        except TransientError as error:
            self.say(f"create gave no clear answer ({error}); looking for the job by its label")
        else:
            self.say(f"created {job['name']} as {action.why}")
            self._bind(intent, replace(action, job=read_job(job)))

    def _withdraw(self, intent: Record, why: str) -> None:
        """Let others create soon: the create that was intended was not sent, and will not be."""
        now, attempt = self.services.now(), intent.attempt
        assert attempt is not None
        what = f"attempt {attempt.number} was not sent"
        attempts = intent.with_attempt(create_deadline=now + SEND_AGAIN)
        self.store.swap(intent, intent.told(now, self.actor, what, why, attempts=attempts))
        self.say(f"{what}: {why}")

    def _bind(self, record: Record, action: Action) -> None:
        """Write the job's name into the record, and tie the lease to it."""
        job, attempt = action.job, record.attempt
        assert job is not None
        assert attempt is not None
        now = self.services.now()
        attempts = record.with_attempt(job_name=job.name, bound_at=now)
        what = f"attempt {attempt.number} is {job.name}"
        bound = self.store.swap(record, record.told(now, self.actor, what, attempts=attempts))
        if bound is None or not record.accelerators or not job.live:  # what has ended needs no GPUs, and tells its end
            return
        if self.services.queue.bind(record.job_key, job.name):
            return
        # Somebody else may have the GPUs by now. Where this process dies before the cancel, the next look cancels it.
        why = "its reservation had passed when the job came to be"
        self._end_attempt(bound, replace(action, attempt=attempt.number, why=why, verdict=Verdict.QUOTA))
        self._ask_to_cancel(job, why)

    def _ask_to_cancel(self, job: Job, why: str) -> None:
        self.say(f"cancelling {job.name}: {why}")
        with contextlib.suppress(RequestRefused, NotFoundError):  # it has ended, or was deleted, in the meantime
            self.services.vertex_of(job.name).cancel(job.name)

    def _cancel_job(self, record: Record, action: Action) -> None:
        """Tell the story first, so that it explains the job also when the reply is lost."""
        job = action.job
        assert job is not None
        what = f"cancels {job.name}"
        told = any(line.what == what for line in record.story)
        cancels = record.told(self.services.now(), self.actor, what, action.why, attempts=late_attempts(record, job))
        if not told and self.store.swap(record, cancels) is None:
            return
        self._ask_to_cancel(job, action.why)

    def _end_attempt(self, record: Record, action: Action) -> None:
        """Note how the current attempt ended; a job that was refused for good ends the generation with it."""
        now = self.services.now()
        what = f"attempt {action.attempt} ended: {action.verdict}"
        closed = {} if action.verdict in RESUMABLE else {"verdict": Verdict.FAILED, "message": action.why}
        ended = record.told(now, self.actor, what, action.why, attempts=ended_attempts(record, action, now), **closed)
        if self.store.swap(record, ended) is not None:
            if closed:
                self.services.queue.release(record.job_key)
            else:
                self.services.queue.free(ended, self.store.uri)
            self.say(f"attempt {action.attempt} ended ({action.verdict}): {action.why}")

    def _finish(self, record: Record, action: Action) -> bool:
        """Close the generation, and give back what it held; False when the record moved on, and is to be seen again."""
        now = self.services.now()
        if record.verdict is None:
            attempts = record.attempts
            if record.attempt is not None and record.attempt.verdict is None:
                attempts = ended_attempts(record, replace(action, job=action.job or self.observed), now)
            closed = record.told(
                now, self.actor, f"ended: {action.verdict}", action.why,
                verdict=action.verdict, message=action.why, attempts=attempts,
            )  # fmt: skip
            if self.store.swap(record, closed) is None:
                return False
        if record.queued:
            self.services.queue.release(record.job_key)
        return True

    def _ordered(self, record: Record, why: str, verdict: Verdict) -> Record:
        now = self.services.now()
        order = CancelOrder(by=self.actor, why=why, at=now, verdict=verdict)
        return record.told(now, self.actor, "ordered the end", why, cancel=order)


def _tells_the_end(record: Record, listed: Jobs) -> bool:
    """True when the list tells that the current job has ended, and all jobs of the record are of its region."""
    attempt = record.attempt
    if attempt is None or attempt.verdict is not None or len(record.regions) > 1:
        return False
    return any(job["name"] == attempt.job_name and job.get("state") in TERMINAL for job in listed)
