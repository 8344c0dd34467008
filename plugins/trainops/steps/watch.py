"""Watch one job key until it is submitted or has ended: the loop's body that operator, sensor and trigger share."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from trainops import naming
from trainops.errors import CapacityError, ServiceError, TrainopsError, TransientError
from trainops.gcp.logs import LogLine
from trainops.policy.lifecycle import Job
from trainops.policy.record import Record
from trainops.steps.run import Run, Say
from trainops.steps.run_logs import LogFollower, progress_line, unreadable
from trainops.steps.services import Services

Until = Literal["submitted", "ended"]

REPEAT_SECONDS = 60.0
"""An unchanged reason to wait is told again after so long."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """What one look found.

    :param job: the job that is followed, bound in the record; None before it exists and after it ended.
    :param folder: of the generation, where the trainer leaves its metrics.
    :param wake_by: when the look must be repeated even if nothing changes: a deadline.
    """

    done: bool
    why: str
    job: Job | None = None
    folder: str = ""
    wake_by: datetime | None = None


class Watch:
    """Reconciles a job key again and again, and tells what happens.

    :param until: `submitted` ends when a job exists, `ended` when the generation has ended.
    :param max_unknown_seconds: how long errors that may pass are polled through.
    :param position: of the log, where an earlier watch stopped.
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
    ) -> None:
        self.run = Run(services, record_uri, actor=actor, say=say)
        self.services = services
        self.until = until
        self.say = say
        self.max_unknown_seconds = max_unknown_seconds
        self.follower = LogFollower(services.logs, position)
        self._position_uri: str | None = None
        self._kept_position = position
        self._unknown_since: float | None = None
        self._told: dict[str, tuple[str, float]] = {}

    @property
    def job_label(self) -> str:
        """Value of the label that all jobs of the job key carry."""
        return naming.label_value(self.run.store.load().job_key)

    def look(self) -> Look:
        """Reconcile once and tell what is new.

        :raises ServiceError: a permanent error, or one that lasted longer than `max_unknown_seconds`.
        """
        try:
            look = self._look()
        except (TransientError, CapacityError) as error:
            self.not_seen(error)
            return Look(done=False, why=str(error))
        self.seen()
        return look

    def not_seen(self, error: TrainopsError) -> None:
        """Note that the state is unknown for now.

        :raises ServiceError: `error`, when it is permanent or has been so for longer than `max_unknown_seconds`.
        """
        now = time.monotonic()
        self._unknown_since = self._unknown_since or now
        passes = isinstance(error, (TransientError, CapacityError))
        if not passes or now - self._unknown_since > self.max_unknown_seconds:
            raise error
        self._tell("unknown", f"the state is unknown for now: {error}")

    def seen(self) -> None:
        """Note that the state is known."""
        self._unknown_since = None

    def tell_lines(self, lines: Sequence[LogLine], problem: ServiceError | None = None) -> None:
        """Tell lines of the job that somebody else read, or why they could not be read."""
        for text in self.follower.take(lines):
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
                self._kept_position = self.follower.position

    def keep_position(self) -> None:
        """Store the position in the log when it has changed, if this watch remembers it."""
        position = self.follower.position
        if self._position_uri is not None and position != self._kept_position:
            with contextlib.suppress(ServiceError):
                self.services.storage.write_json(self._position_uri, position, generation=None)
                self._kept_position = position

    def forget(self) -> None:
        """Remove the stored position: who goes on has it."""
        if self._position_uri is not None:
            with contextlib.suppress(ServiceError):
                self.services.storage.delete(self._position_uri)

    def tell_progress(self, folder: str) -> None:
        """Tell how far the training is, when that is new.

        :raises ServiceError: as `not_seen`.
        """
        try:
            progress = progress_line(self.services.storage, folder)
        except (TransientError, CapacityError) as error:
            self.not_seen(error)
            return
        if progress is not None:
            self._tell("progress", progress)

    def _look(self) -> Look:
        action = self.run.advance()
        record = self.run.store.load()
        if self.until == "ended":
            self._follow(record)
        if action.what == "finish":
            return Look(done=True, why=action.why)
        self._tell("why", action.why)
        attempt = record.attempt
        submitted = attempt is not None and attempt.job_name is not None and attempt.verdict is None
        return Look(
            done=self.until == "submitted" and submitted,
            why=action.why,
            job=self.run.observed if submitted else None,
            folder=record.folder,
            wake_by=record.limits.finish_by,
        )

    def _follow(self, record: Record) -> None:
        attempt = record.attempt
        if attempt is None or attempt.job_name is None:
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
