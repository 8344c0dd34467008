"""The record of a job key: everything that was intended, done and decided for it, in one object.

It is written with a generation match, so two processes never overwrite each other's intent. Together with the jobs
that carry the job key's label, and its lease, it is the whole state of a run: no step is remembered only in a process.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from trainops.config.later_fields import LaterFields
from trainops.naming import pool_gpus


class Part(BaseModel):
    """What every part of a record has in common: frozen, and closed against keys of other versions."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class TaskTry(Part):
    """One try of an Airflow task, as far as it tells a clear from a retry."""

    dag_id: str = Field(description="DAG id.")
    run_id: str = Field(description="DAG run id.")
    task_id: str = Field(description="Task id.")
    map_index: int = Field(default=-1, description="Index of a mapped task, else -1.")
    ti_id: str = Field(default="", description="Id of the task instance, new for each try.")
    try_number: int = Field(default=1, description="Number of the try.")
    max_tries: int = Field(default=0, description="Raised by a clear, never by a retry.")
    clear_number: int = Field(default=0, description="Number of clears of the DAG run.")
    ended: str | None = Field(default=None, description="How the try ended; None when it was killed or still runs.")


class Verdict(StrEnum):
    """How an attempt, or a whole generation, ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    OUT_OF_MEMORY = "out_of_memory"
    IMAGE_PULL = "image_pull"
    PERMISSION = "permission"
    CANCELLED = "cancelled"
    DEADLINE = "deadline"
    PREEMPTED = "preempted"
    SPOT_LOST = "spot_lost"
    STOCKOUT = "stockout"
    QUOTA = "quota"
    INTERNAL = "internal"
    VANISHED = "vanished"
    COST_CAP = "cost_cap"
    REFUSED = "refused"


RESUMABLE = frozenset({
    Verdict.PREEMPTED, Verdict.SPOT_LOST, Verdict.STOCKOUT, Verdict.QUOTA, Verdict.INTERNAL, Verdict.VANISHED,
})  # fmt: skip
"""Ends of an attempt after which the next attempt follows by itself, and costs no Airflow retry."""


class LeaveOrder(Part):
    """The queue needs the GPUs of an attempt for somebody else."""

    at: datetime = Field(description="When it was asked.")
    leave_by: datetime = Field(description="A job that lives longer is cancelled; the next attempt resumes.")
    why: str = Field(description="One sentence.")
    cancelled: bool = Field(default=False, description="Whether it was cancelled since it had not left by then.")


class Candidate(Part, LaterFields):
    """Machines that a generation's job may run on, with the job as it is sent there."""

    LATER = frozenset({"after_spot"})

    region: str = Field(description="Region that the job goes to.")
    accelerators: dict[str, int] = Field(default_factory=dict, description="GPUs of all replicas, by type.")
    provisioning: str = Field(default="standard", description="standard, spot or flex_start.")
    spec: dict[str, Any] = Field(description="The CustomJob, frozen for the generation; attempts add two labels.")
    after_spot: bool = Field(default=False, description="Taken only once Spot machines were given up.")

    @property
    def gpus(self) -> dict[str, int]:
        """GPUs by pool."""
        return pool_gpus(self.accelerators, self.region, self.provisioning)

    def __str__(self) -> str:
        gpus = " and ".join(f"{count} x {kind}" for kind, count in self.accelerators.items() if count)
        machines = f"{gpus} in {self.region}" if gpus else self.region
        return machines if self.provisioning == "standard" else f"{machines}, {self.provisioning}"


class Attempt(Part, LaterFields):
    """One job submitted, or about to be, for a generation."""

    LATER = frozenset({"candidate", "usd_per_hour", "started_at", "ran_seconds", "usd"})

    number: int = Field(description="1, 2, 3 ... within the generation.")
    writer: str = Field(description="Id of the process that intends to create the job.")
    intent_at: datetime = Field(description="When the intent was written, before create was called.")
    create_deadline: datetime = Field(
        description="Until then nobody else creates a job for this attempt; sooner where its create was not sent."
    )
    job_name: str | None = Field(default=None, description="projects/P/locations/R/customJobs/N once known.")
    bound_at: datetime | None = Field(default=None, description="When the job's name was written here.")
    verdict: Verdict | None = Field(default=None, description="How it ended; None while it lives.")
    message: str = Field(default="", description="Google's or our own sentence about the end.")
    exit_code: int | None = Field(default=None, description="Exit code of the replica that failed, when known.")
    ended_at: datetime | None = Field(default=None, description="When the end was noticed.")
    leave: LeaveOrder | None = Field(default=None, description="Set once it was asked to save its state and leave.")
    candidate: int = Field(default=0, description="Which of the record's candidates it runs on; 0 is the first.")
    usd_per_hour: float | None = Field(
        default=None, description="Price of its machines by the list of that day; None: the list has none."
    )
    started_at: datetime | None = Field(default=None, description="When Google says that its machines began to run.")
    ran_seconds: float | None = Field(default=None, description="How long its machines ran; None before its end.")
    usd: float | None = Field(default=None, description="What that costs by the list; None: not known.")


class CancelOrder(Part):
    """Somebody wants the generation ended."""

    by: str = Field(description="Who: a task, a person, housekeeping.")
    why: str = Field(description="One sentence.")
    at: datetime = Field(description="When it was asked.")
    verdict: Verdict = Field(default=Verdict.CANCELLED, description="What the generation ends as.")


class Decision(Part):
    """One line of the record's story."""

    at: datetime = Field(description="When.")
    by: str = Field(description="Who.")
    what: str = Field(description="What was done.")
    why: str = Field(default="", description="Why.")


class Limits(Part, LaterFields):
    """Absolute deadlines of a generation; they hold while a task is deferred, too."""

    LATER = frozenset({"max_spot_losses", "spot_until", "max_usd"})

    submit_by: datetime | None = Field(default=None, description="Waiting for GPUs ends here.")
    finish_by: datetime | None = Field(default=None, description="The generation ends here, whatever it does.")
    max_attempts: int = Field(
        default=20, description="Attempts that a generation may have, without those whose machines were taken."
    )
    max_spot_losses: int | None = Field(
        default=None, description="Spot machines are given up after so many losses; None: never."
    )
    max_usd: float | None = Field(default=None, description="What all attempts together may cost; None: no cap.")
    spot_until: datetime | None = Field(
        default=None, description="No attempt begins on Spot machines from then on; None: at any time."
    )


class Record(Part, LaterFields):
    """The record of a job key. The current generation's fields stand at the top, earlier ones whole in `earlier`."""

    LATER = frozenset({"alternatives"})

    kind: Literal["trainops.record"] = Field(default="trainops.record", description="Tells it from other objects.")
    schema_number: Literal[1] = Field(default=1, alias="schema", description="Version of this layout.")
    job_key: str = Field(description="Run key + task + map index.")
    run_key: str = Field(description="The run.")
    experiment: str = Field(description="The experiment, or the DAG id of a DAG without one.")
    owner: TaskTry = Field(description="The last try that worked on it.")
    generation: int = Field(default=1, description="Begins with the first start and with each clear.")
    opened_at: datetime = Field(description="When the generation began.")
    region: str = Field(description="Region of the first candidate.")
    spec: dict[str, Any] = Field(description="The first candidate's CustomJob, frozen for the generation.")
    spec_hash: str = Field(description="Fingerprint of `spec`, a label of every job.")
    folder: str = Field(description="The generation's folder.")
    accelerators: dict[str, int] = Field(default_factory=dict, description="GPUs of the first candidate, by type.")
    provisioning: str = Field(default="standard", description="Of the first candidate: standard, spot or flex_start.")
    alternatives: tuple[Candidate, ...] = Field(
        default=(), description="Candidates after the first, in the order in which they are tried."
    )
    priority: int = Field(default=0, description="Queue priority class; higher first.")
    estimate_seconds: float | None = Field(default=None, description="Seconds that it probably runs; None: unknown.")
    preemptible: bool = Field(
        default=False, description="Whether its trainer saves its state and leaves when the control folder says so."
    )
    limits: Limits = Field(default_factory=Limits, description="Deadlines.")
    attempts: tuple[Attempt, ...] = Field(default=(), description="In order; the last one is the current one.")
    cancel: CancelOrder | None = Field(default=None, description="Set once the generation is to end.")
    verdict: Verdict | None = Field(default=None, description="How the generation ended; None while it is open.")
    message: str = Field(default="", description="Sentence about the end.")
    hand_over: str | None = Field(default=None, description="Set before a trigger fires: who goes on.")
    story: tuple[Decision, ...] = Field(default=(), description="Every decision, oldest first.")
    earlier: tuple[dict[str, Any], ...] = Field(default=(), description="Earlier generations, whole.")

    @property
    def attempt(self) -> Attempt | None:
        """The current attempt."""
        return self.attempts[-1] if self.attempts else None

    @property
    def counted_attempts(self) -> int:
        """Attempts that count for `max_attempts`: not those whose machines were taken and whose work goes on.

        The queue may ask a job to make room, and Google take its Spot machines, any number of times.
        """
        return sum(item.verdict not in {Verdict.PREEMPTED, Verdict.SPOT_LOST} for item in self.attempts)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All machines that the generation's job may run on, the first choice first."""
        first = Candidate(
            region=self.region, accelerators=self.accelerators, provisioning=self.provisioning, spec=self.spec
        )
        return (first, *self.alternatives)

    @property
    def machines(self) -> Candidate:
        """The machines of the current attempt; the first choice before there is one."""
        return self.candidates[0 if self.attempt is None else self.attempt.candidate]

    @property
    def regions(self) -> tuple[str, ...]:
        """The regions in which this job key may have jobs: of all candidates, and a clear may have moved it."""
        past = [str(place["region"]) for item in self.earlier for place in (item, *item.get("alternatives", ()))]
        return tuple(dict.fromkeys([*(item.region for item in self.candidates), *past]))

    @property
    def queued(self) -> bool:
        """True when this generation or an earlier one may hold a place in the GPU queue."""
        return bool(self.accelerators) or any(item.get("accelerators") for item in self.earlier)

    @property
    def job_names(self) -> tuple[str, ...]:
        """Every job that was bound, of this generation and of earlier ones."""
        attempts = [item for past in self.earlier for item in past["attempts"]]
        found = [*(item["job_name"] for item in attempts), *(item.job_name for item in self.attempts)]
        return tuple(dict.fromkeys(name for name in found if name))

    @property
    def unclear(self) -> bool:
        """True when a create was intended, in this generation or an earlier one, and no job of it is known."""
        past = [item for generation in self.earlier for item in generation["attempts"]]
        open_ones = [(item["job_name"], item["verdict"]) for item in past]
        open_ones += [(item.job_name, item.verdict) for item in self.attempts]
        return any(name is None and verdict is None for name, verdict in open_ones)

    def told(self, at: datetime, by: str, what: str, why: str = "", **changes: Any) -> Record:
        """A copy with one more line of story and `changes`."""
        line = Decision(at=at, by=by, what=what, why=why)
        return self.model_copy(update={**changes, "story": (*self.story, line)})

    def names(self, job_name: str) -> bool:
        """True when the story of this or of an earlier generation tells of a job."""
        lines = [line.what for line in self.story]
        lines += [line["what"] for generation in self.earlier for line in generation["story"]]
        return any(job_name in line for line in lines)

    def with_attempt(self, **changes: Any) -> tuple[Attempt, ...]:
        """The attempts, the current one changed."""
        return (*self.attempts[:-1], self.attempts[-1].model_copy(update=changes))

    def to_json(self) -> dict[str, Any]:
        """The JSON that is stored."""
        return self.model_dump(mode="json", by_alias=True)
