"""Watch one job key until it is submitted or has ended: the loop's body that operator, sensor and trigger share."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

from trainops.errors import CapacityError, TransientError
from trainops.policy.record import Record
from trainops.steps.run import Run, Say
from trainops.steps.run_logs import LogFollower, progress_line
from trainops.steps.services import Services

Until = Literal["submitted", "ended"]

REPEAT_SECONDS = 60.0
"""An unchanged reason to wait is told again after so long."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """What one look found."""

    done: bool
    why: str


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
        self._unknown_since: float | None = None
        self._told: dict[str, tuple[str, float]] = {}

    def look(self) -> Look:
        """Reconcile once and tell what is new.

        :raises ServiceError: a permanent error, or one that lasted longer than `max_unknown_seconds`.
        """
        try:
            look = self._look()
        except (TransientError, CapacityError) as error:
            now = time.monotonic()
            self._unknown_since = self._unknown_since or now
            if now - self._unknown_since > self.max_unknown_seconds:
                raise
            self._tell("unknown", f"the state is unknown for now: {error}")
            return Look(done=False, why=str(error))
        self._unknown_since = None
        return look

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
        return Look(done=self.until == "submitted" and submitted, why=action.why)

    def _follow(self, record: Record) -> None:
        attempt = record.attempt
        if attempt is None or attempt.job_name is None:
            return
        for line in self.follower.new_lines(attempt.job_name):
            self.say(line)
        progress = progress_line(self.services.storage, record.folder)
        if progress is not None:
            self._tell("progress", progress)

    def _tell(self, topic: str, text: str) -> None:
        """Say `text` when it is new, or was not said for a while."""
        before, at = self._told.get(topic, ("", 0.0))
        now = time.monotonic()
        if text == before and now - at < REPEAT_SECONDS:
            return
        self._told[topic] = (text, now)
        self.say(text)
