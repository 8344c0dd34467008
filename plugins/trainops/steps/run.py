"""Reconcile a job key: observe, decide, act, one step at a time.

`Run.advance()` can be called by anyone (operator, sensor, trigger, teardown, housekeeping, a person), any number of
times, at any moment, also by several at once. What it knows it reads each time from the record, the job list and the
queue; what it decides comes from `policy.lifecycle.next_action`.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from trainops import naming
from trainops.errors import AccessError, CapacityError, NotFoundError, RequestRefused, TransientError
from trainops.policy.lifecycle import Action, Job, Lease, current_job, next_action
from trainops.policy.record import Attempt, CancelOrder, Record, Verdict
from trainops.steps.record_store import RecordStore
from trainops.steps.services import Services
from trainops.steps.start import attempt_body

CREATE_TIME = timedelta(seconds=90)
"""How long a create may take before somebody else may create instead; longer than the client's own timeout."""

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

    def advance(self) -> Action:
        """Take steps until one answers wait or finish, and return that one.

        :raises ServiceError: what Google answered, when asking again may help or somebody must act.
        """
        for _ in range(STEPS_AT_ONCE):
            record = self.store.load()
            jobs = self._jobs(record)
            self.observed = current_job(record, jobs)
            action = next_action(record, jobs, self._lease(record), datetime.now(UTC))
            if action.what == "finish":
                self._finish(record, action)
                return action
            if action.what == "wait":
                return action
            self._act(record, action)
        return Action(what="wait", why=f"{STEPS_AT_ONCE} steps were taken at once; the next look goes on")

    def cancel(self, why: str) -> None:
        """Order the generation ended; `advance` then follows it until that is confirmed."""
        self.store.change(lambda record: record and _ordered(record, self.actor, why, Verdict.CANCELLED))

    def _jobs(self, record: Record) -> tuple[Job, ...]:
        key = naming.label_value(record.job_key)
        found = self.services.vertex(record.region).list(
            f'labels.job-key="{key}" AND labels.managed-by="{naming.MANAGED_BY}"'
        )
        jobs = [read_job(item) for item in found]
        return tuple(self._with_marker(record, job) for job in jobs)

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
            return Lease(state="bound")  # the record knows more than the ledger: there is a job
        return self.services.queue.lease(record.job_key)

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
                verdict = action.verdict or Verdict.CANCELLED
                self.store.change(lambda now: now and _ordered(now, self.actor, action.why, verdict))
            case _:
                self._end_attempt(record, action)

    def _enqueue(self, record: Record, action: Action) -> None:
        self.services.queue.enqueue(record, self.store.uri)
        self.say(f"asked the GPU queue for {_counts(record.accelerators)}: {action.why}")

    def _submit(self, record: Record, action: Action) -> None:
        """Write the intent, create, and let the next look at the list tell what really exists."""
        intent = self._intend(record, action)
        if intent is None:
            return
        body = attempt_body(record.spec, record.folder, record.generation, action.attempt)
        sent = f"{naming.attempt_folder(record.folder, action.attempt)}/job.json"
        self.services.storage.write_json(sent, body, generation=None)
        try:
            job = self.services.vertex(record.region).create(body)
        except CapacityError as error:
            self._give_up_attempt(action, Verdict.QUOTA, str(error))
            return
        except (RequestRefused, AccessError, NotFoundError) as error:
            self._give_up_attempt(action, Verdict.REFUSED, f"Vertex refused the job: {error}")
            return
        except TransientError as error:
            self.say(f"create gave no clear answer ({error}); looking for the job by its label")
            return
        self.say(f"created {job['name']} as {action.why}")
        self._bind(self.store.load(), Action(what="bind", why=action.why, job=read_job(job)))

    def _intend(self, record: Record, action: Action) -> Record | None:
        """The record with our intent; None when somebody else was first."""
        now = datetime.now(UTC)
        mine = Attempt(number=action.attempt, writer=self.writer, intent_at=now, create_deadline=now + CREATE_TIME)

        def intended(current: Record | None) -> Record | None:
            if current is None or current.attempts != record.attempts or current.cancel is not None:
                return None
            kept = tuple(item for item in current.attempts if item.number != action.attempt)
            return current.told(
                now, self.actor, f"intends attempt {action.attempt}", action.why, attempts=(*kept, mine)
            )

        after = self.store.change(intended)
        return (
            after if after is not None and after.attempt is not None and after.attempt.writer == self.writer else None
        )

    def _bind(self, record: Record, action: Action) -> None:
        job = action.job
        assert job is not None
        now = datetime.now(UTC)

        def bound(current: Record | None) -> Record | None:
            attempt = current.attempt if current is not None else None
            if current is None or attempt is None or attempt.number != job.attempt or attempt.job_name is not None:
                return None
            attempts = current.with_attempt(job_name=job.name, bound_at=now)
            return current.told(now, self.actor, f"attempt {attempt.number} is {job.name}", attempts=attempts)

        after = self.store.change(bound)
        name = after.attempt.job_name if after is not None and after.attempt is not None else None
        if record.accelerators and name is not None and not self.services.queue.bind(record.job_key, name):
            self._give_back(record, replace(job, name=name))

    def _give_back(self, record: Record, job: Job) -> None:
        """A job whose lease was given to somebody else in the meantime may not use those GPUs: end it, queue again."""
        why = "its reservation had passed when the job came to be"
        self._cancel_job(record, Action(what="cancel_job", why=why, job=job))
        end = Action(what="end_attempt", why=why, attempt=job.attempt, verdict=Verdict.QUOTA)
        self._end_attempt(self.store.load(), end)

    def _cancel_job(self, record: Record, action: Action) -> None:
        job = action.job
        assert job is not None
        self.say(f"cancelling {job.name}: {action.why}")
        try:
            self.services.vertex(record.region).cancel(job.name)
        except RequestRefused:
            return  # it ended in the meantime: cancelling a finished job is no error
        now = datetime.now(UTC)
        self.store.change(lambda at: at and at.told(now, self.actor, f"cancelled {job.name}", action.why))

    def _end_attempt(self, record: Record, action: Action) -> None:
        now = datetime.now(UTC)

        def ended(current: Record | None) -> Record | None:
            attempt = current.attempt if current is not None else None
            if current is None or attempt is None or attempt.number != action.attempt or attempt.verdict is not None:
                return None
            attempts = current.with_attempt(
                verdict=action.verdict, message=action.why, exit_code=action.exit_code, ended_at=now
            )
            return current.told(
                now, self.actor, f"attempt {attempt.number} ended: {action.verdict}", action.why, attempts=attempts
            )

        self.store.change(ended)
        self.services.queue.release(record.job_key)
        self.say(f"attempt {action.attempt} ended ({action.verdict}): {action.why}")

    def _give_up_attempt(self, action: Action, verdict: Verdict, why: str) -> None:
        """The create was refused, so no job exists: end the attempt, and the generation when asking again is no use."""
        self._end_attempt(
            self.store.load(), Action(what="end_attempt", why=why, attempt=action.attempt, verdict=verdict)
        )
        if verdict is Verdict.REFUSED:
            now = datetime.now(UTC)
            self.store.change(
                lambda at: at and at.told(now, self.actor, "gave up", why, verdict=Verdict.FAILED, message=why)
            )

    def _finish(self, record: Record, action: Action) -> None:
        now = datetime.now(UTC)

        def finished(current: Record | None) -> Record | None:
            if current is None or current.verdict is not None or current.generation != record.generation:
                return None
            attempts = current.attempts
            if current.attempt is not None and current.attempt.verdict is None:
                attempts = current.with_attempt(
                    verdict=action.verdict, message=action.why, exit_code=action.exit_code, ended_at=now
                )
            return current.told(
                now, self.actor, f"ended: {action.verdict}", action.why,
                verdict=action.verdict, message=action.why, attempts=attempts,
            )  # fmt: skip

        self.store.change(finished)
        if record.accelerators:
            self.services.queue.release(record.job_key)


def read_job(body: dict[str, Any]) -> Job:
    """A job of Vertex's JSON, as the lifecycle sees it."""
    labels = body.get("labels", {})
    error = body.get("error", {})
    return Job(
        name=body["name"],
        state=str(body.get("state", "JOB_STATE_UNSPECIFIED")),
        create_time=body.get("createTime", ""),
        generation=_number(labels.get("generation")),
        attempt=_number(labels.get("attempt")),
        error_code=int(error.get("code", 0)),
        error_message=error.get("message", ""),
    )


def _ordered(record: Record, by: str, why: str, verdict: Verdict) -> Record | None:
    if record.verdict is not None or record.cancel is not None:
        return None
    now = datetime.now(UTC)
    return record.told(now, by, "ordered the end", why, cancel=CancelOrder(by=by, why=why, at=now, verdict=verdict))


def _counts(accelerators: dict[str, int]) -> str:
    return ", ".join(f"{count} x {kind}" for kind, count in accelerators.items())


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() else 0
