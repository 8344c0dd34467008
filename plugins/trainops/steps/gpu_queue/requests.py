"""Queue requests: one object per job key, written by whoever owns it, read by everybody who plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from trainops.config.later_fields import LaterFields
from trainops.gcp.storage import Storage
from trainops.policy.candidates import windows
from trainops.policy.record import Record, Verdict
from trainops.steps.gpu_queue.parsing import KnownObjects


class Choice(BaseModel):
    """GPUs that a job key can start on, and when."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    gpus: dict[str, int] = Field(description="GPUs by pool.")
    not_before: datetime | None = Field(default=None, description="It is not admitted there before.")
    not_after: datetime | None = Field(default=None, description="It is not admitted there from then on.")

    def is_open(self, now: datetime) -> bool:
        """True when it may be admitted there now."""
        early = self.not_before is not None and now < self.not_before
        return not early and (self.not_after is None or now < self.not_after)


class QueueRequest(LaterFields):
    """What a job key asks for, and how far it is."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    LATER = frozenset({"not_after", "others"})

    kind: Literal["trainops.request"] = Field(default="trainops.request", description="Tells it from others.")
    job_key: str = Field(description="Who asks.")
    gpus: dict[str, int] = Field(description="GPUs of its first choice, by pool.")
    priority: int = Field(default=0, description="Priority class.")
    record: str = Field(description="URI of the job key's record.")
    arrived: datetime | None = Field(default=None, description="Server time of the first write; kept when refreshed.")
    estimate_seconds: float | None = Field(default=None, description="Seconds that the whole takes, as its owner says.")
    ran_seconds: float = Field(default=0.0, description="Seconds that its jobs ran which have ended.")
    remaining_seconds: float | None = Field(default=None, description="Seconds left by its own report, at the write.")
    preemptions: int = Field(default=0, description="How often it made room.")
    preemptible: bool = Field(default=False, description="Whether it can save its state when asked to leave.")
    not_before: datetime | None = Field(default=None, description="Its first choice pauses until then.")
    not_after: datetime | None = Field(default=None, description="Its first choice is closed from then on.")
    others: tuple[Choice, ...] = Field(default=(), description="What it can run on instead, in its order.")

    @property
    def choices(self) -> tuple[Choice, ...]:
        """All that it can run on, the first choice first."""
        return (Choice(gpus=self.gpus, not_before=self.not_before, not_after=self.not_after), *self.others)


@dataclass(frozen=True, slots=True)
class FoundRequest:
    """A request, and when its owner wrote it last, in the server's time."""

    request: QueueRequest
    updated: datetime


class RequestStore:
    """Reads all requests."""

    def __init__(self, storage: Storage, work: str) -> None:
        self._objects = KnownObjects(storage, f"{work}/queue/requests/", lambda _uri: QueueRequest)

    @property
    def unread(self) -> list[str]:
        """What stood among the requests at the last look and is none: its own owner is told when it looks."""
        return self._objects.unread

    def all(self) -> list[FoundRequest]:
        """Every request that can be read, each with the moment of its first write."""
        return [
            FoundRequest(request.model_copy(update={"arrived": request.arrived or info.updated}), info.updated)
            for info, request in self._objects.look()
        ]


def choices_of(record: Record) -> tuple[Choice, ...]:
    """What a record's generation can run on, and when."""
    return tuple(
        Choice(gpus=item.candidate.gpus, not_before=item.not_before, not_after=item.not_after)
        for item in windows(record)
    )


def request_of(record: Record, record_uri: str, choices: Sequence[Choice]) -> QueueRequest:
    """What a record's generation asks for.

    :param choices: at least one.
    """
    first, *others = choices
    spans = [(item.bound_at, item.ended_at) for item in record.attempts]
    return QueueRequest(
        job_key=record.job_key,
        gpus=first.gpus,
        not_before=first.not_before,
        not_after=first.not_after,
        others=tuple(others),
        priority=record.priority,
        record=record_uri,
        estimate_seconds=record.estimate_seconds,
        ran_seconds=sum((ended - bound).total_seconds() for bound, ended in spans if bound and ended),
        preemptions=sum(item.verdict is Verdict.PREEMPTED for item in record.attempts),
        preemptible=record.preemptible,
    )
