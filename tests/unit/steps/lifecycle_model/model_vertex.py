"""Vertex AI as it may behave: lists lag, creates arrive late, cancels take their time, people interfere."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tests.unit.steps.lifecycle_model.actor import Actor, Crash, Fate
from tests.unit.steps.lifecycle_model.model_storage import met

from trainops import naming
from trainops.errors import AccessError, CapacityError, NotFoundError, NotSentError, RequestRefused, TransientError
from trainops.gcp.vertex import Jobs, Vertex

TERMINAL = {"SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED"}
LIVE_STATES = ["PENDING", "RUNNING", "PAUSED", "UPDATING", "NEVER_SEEN"]
ERRORS = {
    "user": (3, "The replica workerpool0-0 exited with a non-zero status of 1."),
    "never": (3, "The replica workerpool0-0 exited with a non-zero status of 2."),
    "stockout": (8, "Resources are insufficient in region: us-central1."),
    "quota": (8, "The following quota metrics exceed quota limits: x"),
    "internal": (13, "Internal error occurred for the current attempt"),
    "silent": (0, ""),
}
"""Ways to fail: code and message."""

CLIENT_TIMEOUT = timedelta(seconds=70)
"""After so long the caller has given up, and what arrives then is late: seconds to connect and to read."""

_CONDITION = re.compile(r'labels\.([\w-]+)="([^"]*)"')


@dataclass
class ModelJob:
    """A job, and what was done to it."""

    number: int
    region: str
    body: dict[str, Any]
    created: datetime
    state: str = "QUEUED"
    error: dict[str, Any] = field(default_factory=dict)
    seen_as: list[tuple[datetime, str]] = field(default_factory=list)
    """What lists show, from when on; empty before the job appears in them."""
    cancel_asked: bool = False
    by_somebody: bool = False
    """True when a person outside cancelled or deleted it."""
    deleted: bool = False
    late: bool = False
    preempted: bool = False
    """True when its trainer made room for another run before it ended."""

    @property
    def name(self) -> str:
        # Numbers of Vertex tell nothing about the order of creates.
        return f"projects/12/locations/{self.region}/customJobs/{self.number * 7919 % 100_003:06}"

    @property
    def generation(self) -> int:
        return int(self.body["labels"]["generation"])

    @property
    def attempt(self) -> int:
        return int(self.body["labels"]["attempt"])

    @property
    def control(self) -> str:
        """The folder in which its trainer looks for orders."""
        pool = self.body["jobSpec"]["workerPoolSpecs"][0]
        env: list[dict[str, str]] = pool["containerSpec"]["env"]
        return next(item["value"] for item in env if item["name"] == naming.CONTROL_VARIABLE)

    @property
    def live(self) -> bool:
        return not self.deleted and self.state not in TERMINAL

    def json(self, state: str) -> dict[str, Any]:
        told = {"name": self.name, "state": f"JOB_STATE_{state}", "createTime": self.created.isoformat()}
        error = {"error": self.error} if self.error and state == "FAILED" else {}
        return {**self.body, **told, **error}


class Cloud:
    """All jobs, and creates that are still on their way.

    :param lag: how long lists take to show what happened.
    """

    def __init__(self, now: Callable[[], datetime], lag: timedelta) -> None:
        self.now = now
        self.lag = lag
        self.jobs: list[ModelJob] = []
        self.on_their_way: list[tuple[str, dict[str, Any]]] = []
        self.created: Callable[[ModelJob], None] = lambda _job: None

    def submit(self, region: str, body: dict[str, Any], *, late: bool = False) -> ModelJob:
        """A create takes effect."""
        job = ModelJob(len(self.jobs) + 1, region, body, self.now(), late=late)
        self.created(job)
        self.jobs.append(job)
        self.move(job, "QUEUED")
        return job

    def arrive(self) -> None:
        """A create that was on its way takes effect."""
        self.submit(*self.on_their_way.pop(0), late=True)

    def end(self, job: ModelJob, how: str) -> None:
        """A job ends in a state, or fails in one of the ways of `ERRORS`."""
        if how in ERRORS:
            code, message = ERRORS[how]
            self.move(job, "FAILED", code=code, message=message)
        else:
            self.move(job, how)

    def meddle(self, job: ModelJob, how: str) -> None:
        """A person outside cancels or deletes a job."""
        job.by_somebody = True
        if how == "deleted":
            job.deleted = True
        else:
            self.move(job, how)

    def move(self, job: ModelJob, state: str, **error: Any) -> None:
        """A job changes its state."""
        job.state, job.error = state, error
        job.seen_as.append((self.now() + self.lag, state))

    def listed(self) -> set[str]:
        """Names of the jobs that lists show as they are."""
        return {job.name for job in self.jobs if self.shown(job) == job.state}

    def shown(self, job: ModelJob) -> str | None:
        """The state that lists show now, None for a job that they do not show."""
        seen = [state for since, state in job.seen_as if since <= self.now()]
        return seen[-1] if seen and not job.deleted else None


class ModelVertex(Vertex):
    """The client of one actor."""

    def __init__(self, cloud: Cloud, actor: Actor | None, region: str) -> None:
        self.cloud = cloud
        self.actor = actor
        self.region = region

    def create(self, job: dict[str, Any]) -> dict[str, Any]:
        asked = self.cloud.now()
        fate = Fate.DONE if self.actor is None else self.actor.at_call("create")
        late = self.cloud.now() > asked + CLIENT_TIMEOUT
        match fate:
            case Fate.CRASH_BEFORE:
                raise Crash("create")
            case Fate.NO_QUOTA:
                raise CapacityError("429: quota exceeded")
            case Fate.REFUSED:
                raise RequestRefused("400: the job is wrong", status=400)
            case Fate.FORBIDDEN:
                raise AccessError("403: not for you", status=403)
            case Fate.NOT_SENT:
                raise NotSentError("create: no connection")
            case Fate.ARRIVES_LATE:
                self.cloud.on_their_way.append((self.region, job))
                raise TransientError("create: no reply", status=503)
            case Fate.NOT_DONE:
                raise TransientError("create: 503", status=503)
        made = self.cloud.submit(self.region, job, late=late)
        if fate is Fate.CRASH_AFTER:
            raise Crash("create")
        if late or fate is not Fate.DONE:
            raise TransientError("create: no reply", status=503)
        return made.json("QUEUED")

    def get(self, name: str) -> dict[str, Any]:
        return met(self.actor, f"get {name}", lambda: self._existing(name).json(self._existing(name).state))

    def list(
        self,
        filter: str = "",  # ruff: ignore[builtin-argument-shadowing]
        fields: Sequence[str] = (),
    ) -> list[dict[str, Any]]:
        assert re.sub(_CONDITION, "", filter).replace(" AND ", "") == "", f"the model knows no filter {filter!r}"
        wanted = dict(_CONDITION.findall(filter))
        return met(self.actor, "list jobs", lambda: self._listed(wanted))

    def cancel(self, name: str) -> None:
        met(self.actor, f"cancel {name}", lambda: self._cancel(name))

    def _listed(self, wanted: dict[str, str]) -> Jobs:
        found = [(job, self.cloud.shown(job)) for job in reversed(self.cloud.jobs)]
        return [
            job.json(state)
            for job, state in found
            if state is not None and job.region == self.region and wanted.items() <= job.body["labels"].items()
        ]

    def _existing(self, name: str) -> ModelJob:
        for job in self.cloud.jobs:
            if job.name == name and not job.deleted:
                return job
        raise NotFoundError(f"{name}: no such job", status=404)

    def _cancel(self, name: str) -> None:
        job = self._existing(name)
        if not job.live:
            raise RequestRefused(f"{name} has ended", status=400)
        job.cancel_asked = True
        if job.state != "CANCELLING":
            self.cloud.move(job, "CANCELLING")
