"""Watch one job key until it is submitted or has ended: the loop's body that operator, sensor and trigger share."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from trainops import naming
from trainops.errors import CapacityError, ServiceError, TrainopsError, TransientError
from trainops.gcp.logs import LogLine
from trainops.gcp.vertex import Jobs
from trainops.jobspec.hidden import secret_values
from trainops.policy.lifecycle import Job
from trainops.policy.record import Record
from trainops.steps.preemption import follow_leaving
from trainops.steps.run import Run, Say
from trainops.steps.run_logs import LogFollower, read_progress, unreadable
from trainops.steps.services import Services

Until = Literal["submitted", "ended"]

REPEAT_SECONDS = 60.0
"""An unchanged reason to wait is told again after so long."""

PLACE_SECONDS = 600.0
"""An unchanged place in the GPU queue is told again after so long, with what is new of its figures."""

KEEP_SECONDS = 60.0
"""The position in the log is stored at most so often: a write for every line would cost more than the list and the logs
together. A process that is killed outright tells at most the lines of so long again."""

CLOCKS_DIFFER = timedelta(days=1)
"""So much may a worker's clock be ahead of that of the machines which stamp log lines: no line is lost by it."""

UNSEEN = "JOB_STATE_UNSPECIFIED"
"""State of a job that the record names and nobody has looked at yet."""


def _tell_nobody(_line: str) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Look:
    """What one look found.

    :param job: the job that is followed, bound in the record; None before it exists and after it ended.
    :param job_label: value of the label that all jobs of the job key carry.
    :param job_key: the unit of record, queue request and lease.
    :param folder: of the generation, where the trainer leaves its metrics.
    :param ended: the generation has ended, and its record says how.
    :param wake_by: when the look must be repeated even if nothing changes: a deadline.
    :param queued: it waits in the GPU queue, and for nothing else.
    """

    done: bool
    why: str
    job: Job | None = None
    job_label: str = ""
    job_key: str = ""
    folder: str = ""
    ended: bool = False
    wake_by: datetime | None = None
    queued: bool = False


class Watch:
    """Reconciles a job key again and again, and tells what happens.

    :param until: `submitted` ends when a job exists, `ended` when the generation has ended.
    :param max_unknown_seconds: how long errors that may pass are polled through.
    :param position: where an earlier watch stopped (`position` of it).
    :param reads_log: False for a watch to which somebody else tells the job's lines (`tell_lines`).
    :param hide: gets the values of the job's secret variables, before a line of it is told.
    """

    def __init__(
        self,
        services: Services,
        record_uri: str,
        *,
        until: Until,
        actor: str,
        say: Say,
        max_unknown_seconds: float = 1800.0,
        position: dict[str, Any] | None = None,
        reads_log: bool = True,
        hide: Say = _tell_nobody,
    ) -> None:
        self.run = Run(services, record_uri, actor=actor, say=say)
        self.services = services
        self.until = until
        self.say = say
        self.max_unknown_seconds = max_unknown_seconds
        self.follower = LogFollower(services.logs, position)
        self.reads_log = reads_log
        self._position_uri: str | None = None
        self._position_told = False
        """True while lines were told that the stored position does not know of."""
        self._position_stored = False
        self._position_kept = time.monotonic() - KEEP_SECONDS * random.random()  # not all watches at the same moment
        since = (position or {}).get("unknown_since")
        self._unknown_since = datetime.fromisoformat(since) if since else None
        self._story: tuple[int, int] | None = None
        """Generation, and lines of its story, up to which all is told or was before this watch began."""
        self._hide = hide
        self._hidden_of: int | None = None
        self._told: dict[str, tuple[str, float]] = {}

    @property
    def position(self) -> dict[str, Any]:
        """Where this watch stands in the log, and since when the state is unknown, as JSON for the one that goes on."""
        since = self._unknown_since.isoformat() if self._unknown_since else None
        return {**self.follower.position, "unknown_since": since}

    def glance(self) -> Look | None:
        """What the record alone tells of a job that is bound and runs on, its state `UNSEEN`; None when one must look.

        Costs no call of Vertex: a thousand watches that begin at once would make a thousand.
        """
        try:
            record = self.run.store.load()
        except (TransientError, CapacityError) as error:
            self.not_seen(error)
            return None
        self.hide_secrets(record)
        self._tell_story(record)
        attempt = record.attempt
        ordered = record.verdict is not None or record.cancel is not None
        if self.until != "ended" or ordered or attempt is None or attempt.job_name is None or attempt.verdict:
            return None
        if self.follower.after is None:  # nothing was told yet, and nothing was printed before the job was
            self.follower.pass_by(attempt.intent_at - CLOCKS_DIFFER)
        return _following(record, Job(name=attempt.job_name, state=UNSEEN), f"{attempt.job_name} is followed")

    def look(self, listed: Jobs | None = None) -> Look:
        """Reconcile once and tell what is new.

        :param listed: all jobs of the job key, where somebody else has just listed them.
        :raises ServiceError: a permanent error, or one that lasted longer than `max_unknown_seconds`.
        """
        try:
            look = self._look(listed or [])
        except (TransientError, CapacityError) as error:
            self.not_seen(error)
            return Look(done=False, why=str(error))
        self.seen()
        return look

    def not_seen(self, error: TrainopsError) -> None:
        """Note that the state is unknown for now.

        :raises ServiceError: `error`, when it is permanent or has been so for longer than `max_unknown_seconds`.
        """
        now = self.services.now()
        self._unknown_since = self._unknown_since or now
        passes = isinstance(error, (TransientError, CapacityError))
        if not passes or (now - self._unknown_since).total_seconds() > self.max_unknown_seconds:
            raise error
        self._tell("unknown", f"the state is unknown for now: {error}")

    def seen(self) -> None:
        """Note that the state is known."""
        self._unknown_since = None

    def abandon(self, why: str) -> None:
        """Order the end of a job that nobody will follow, and cancel it by its name: its list may be what is refused.

        What cannot be done now is left to whoever looks next; the order stands in the record.
        """
        try:
            followed = self.run.store.load().generation
            self.run.cancel(why, followed)
            record = self.run.store.load()
            attempt = record.attempt if record.generation == followed else None
            if record.cancel is not None and attempt is not None and attempt.job_name and attempt.verdict is None:
                self.services.vertex_of(attempt.job_name).cancel(attempt.job_name)
                self.say(f"cancelled {attempt.job_name}: {why}")
        except TrainopsError as error:
            self.say(f"the job could not be cancelled ({error}); end_run or housekeeping goes on with it")

    def hide_secrets(self, record: Record) -> None:
        """Have the values of the job's secret variables hidden, once for each generation."""
        if self._hidden_of != record.generation:
            self._hidden_of = record.generation
            for value in secret_values(record.spec):
                self._hide(value)

    def tell_place(self, reason: str) -> None:
        """Tell its place in the queue: a new one at most once a minute, the same one now and then."""
        place = reason.split(";", 1)[0]
        before, at = self._told.get("place", ("", float("-inf")))
        passed = time.monotonic() - at
        if passed >= (REPEAT_SECONDS if place != before else PLACE_SECONDS):
            self._told["place"] = (place, time.monotonic())
            self.say(reason)

    def still_queued(self, reason: str) -> bool:
        """Say that its owner still waits, and why; False when it is time for a whole look.

        Costs two reads of storage and a write: a thousand whole looks would each list the jobs of one run.

        :raises ServiceError: as `not_seen`.
        """
        try:
            record = self.run.store.load()
            if not _is_queued(record):
                return False
            self.services.queue.report(record, self.run.store.uri, None)
        except (TransientError, CapacityError) as error:
            self.not_seen(error)
            return True
        self.seen()
        self.tell_place(reason)
        return True

    def tell_state(self, job: Job) -> None:
        """Tell the state of the job that somebody else saw, when it is new."""
        text = f"{job.name} is {job.state.removeprefix('JOB_STATE_').lower()}"
        if job.state != UNSEEN and text != self._told.get("why", ("", 0.0))[0]:
            self._tell("why", text)

    def tell_lines(self, lines: Sequence[LogLine], problem: TrainopsError | None = None) -> None:
        """Tell lines of the job that somebody else read, or why they could not be read."""
        for text in self.follower.take(lines):
            self._position_told = True
            self.say(text)
        if problem is not None:
            self._tell("log", unreadable(problem))

    def remember(self, watch: str) -> None:
        """Go on where a watch of the same id stopped, as its process died, and keep the position from now on."""
        self._position_uri = naming.log_position_uri(self.run.store.uri, watch)
        with contextlib.suppress(ServiceError):  # lines told twice are no reason to stop watching
            kept = self.services.storage.read_json(self._position_uri)
            if kept is not None:
                self.follower.go_on_from(kept.value)
                self._position_stored = True

    @property
    def must_keep_position(self) -> bool:
        """True when lines were told since the position was stored, and that was a while ago."""
        return self._position_told and time.monotonic() - self._position_kept >= KEEP_SECONDS

    def keep_position(self) -> None:
        """Store the position in the log, if lines were told since that was done and this watch remembers it."""
        if self._position_uri is None or not self._position_told:
            return
        self._position_told, self._position_kept = False, time.monotonic()
        with contextlib.suppress(ServiceError):
            self.services.storage.write_json(self._position_uri, self.follower.position, generation=None)
            self._position_stored = True

    def forget(self) -> None:
        """Remove the stored position: who goes on has it."""
        if self._position_uri is not None and self._position_stored:
            with contextlib.suppress(ServiceError):
                self.services.storage.delete(self._position_uri)

    def tell_progress(self, folder: str) -> None:
        """Tell how far the training is, when that is new.

        :raises ServiceError: as `not_seen`.
        """
        try:
            progress = read_progress(self.services.storage, folder)
            record = self.run.store.known()
            if record.accelerators:
                remaining = None if progress is None else progress.remaining_seconds
                self.services.queue.report(record, self.run.store.uri, remaining)
        except (TransientError, CapacityError) as error:
            self.not_seen(error)
            return
        if progress is not None:
            self._tell("progress", progress.line)

    def _look(self, listed: Jobs) -> Look:
        action = self.run.advance(listed)
        record = self.run.store.known()
        self.hide_secrets(record)
        self._tell_story(record)
        if self.until == "ended":
            self._follow(record)
        if action.what == "finish":
            return Look(done=True, why=action.why, ended=record.verdict is not None)
        attempt = record.attempt
        submitted = attempt is not None and attempt.job_name is not None and attempt.verdict is None
        if _is_queued(record):
            self.tell_place(action.why)
            self._help_those_who_leave()
            return replace(_following(record, None, action.why), queued=True, wake_by=_waits_until(record))
        self._tell("why", action.why)
        look = _following(record, self.run.observed if submitted else None, action.why)
        return replace(look, done=self.until == "submitted" and submitted)

    def _tell_story(self, record: Record) -> None:
        """Tell what others did with the job key meanwhile: the GPU queue, another task, a person, housekeeping."""
        generation, known = self._story or (record.generation, len(record.story))
        for line in record.story[known if generation == record.generation else 0 :]:
            if line.by != self.run.actor:
                self.say(f"{line.by}: {line.what}" + (f" ({line.why})" if line.why else ""))
        self._story = (record.generation, len(record.story))

    def _help_those_who_leave(self) -> None:
        """Follow jobs that were asked to leave: where no triggerer does it, those who wait do."""
        tick = self.services.queue.last
        if tick is not None:
            follow_leaving(self.services, tick.ledger, actor=self.run.actor, say=self.say)

    def _follow(self, record: Record) -> None:
        attempt = record.attempt
        if not self.reads_log or attempt is None or attempt.job_name is None:
            return
        for line in self.follower.new_lines(attempt.job_name):
            self.say(line)
        self.tell_progress(record.folder)

    def _tell(self, topic: str, text: str) -> None:
        """Say `text` when it is new, or was not said for a while."""
        before, at = self._told.get(topic, ("", 0.0))
        now = time.monotonic()
        if text == before and now - at < REPEAT_SECONDS:
            return
        self._told[topic] = (text, now)
        self.say(text)


def _following(record: Record, job: Job | None, why: str) -> Look:
    return Look(
        done=False,
        why=why,
        job=job,
        job_label=naming.label_value(record.job_key),
        job_key=record.job_key,
        folder=record.folder,
        wake_by=min((moment for moment in (record.limits.finish_by, _leave_by(record)) if moment), default=None),
    )


def _is_queued(record: Record) -> bool:
    """True of a generation that waits for GPUs: it has no attempt that lives, nor an end or an order to end."""
    attempt = record.attempt
    open_one = record.verdict is None and record.cancel is None
    return open_one and bool(record.accelerators) and (attempt is None or attempt.verdict is not None)


def _waits_until(record: Record) -> datetime | None:
    limits = record.limits
    return min((moment for moment in (limits.submit_by, limits.finish_by) if moment is not None), default=None)


def _leave_by(record: Record) -> datetime | None:
    leave = None if record.attempt is None else record.attempt.leave
    return None if leave is None or leave.cancelled else leave.leave_by
