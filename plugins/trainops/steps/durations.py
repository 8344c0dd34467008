"""How long the runs of an experiment trained: one object per experiment, which makes the estimate of the next run.

A run that its file gives no estimate is told to the queue with the median of the last runs' seconds per step, times its
own steps. The median, since one run that was slowed down or started from nothing must not count; per step, since a run
from the conf with a tenth of the steps takes about a tenth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from operator import methodcaller
from statistics import median
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from trainops import naming
from trainops.config.plan import RunPlan
from trainops.errors import IntegrityError
from trainops.gcp.storage import Storage
from trainops.policy.record import Record, Verdict
from trainops.steps.stored_json import change_model, read_model

KEPT = 20
"""Runs that are kept, the latest."""

Say = Callable[[str], None]


class Duration(BaseModel):
    """How long one run trained."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seconds: float = Field(ge=0, description="Seconds that the machines of its attempts ran, together.")
    steps: int = Field(ge=1, description="Optimizer steps.")
    opened_at: datetime = Field(description="When its generation began.")


class Durations(BaseModel):
    """How long the last runs of an experiment trained."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    kind: Literal["trainops.durations"] = Field(default="trainops.durations", description="Tells it from others.")
    schema_number: Literal[1] = Field(default=1, alias="schema", description="Version of this layout.")
    runs: dict[str, Duration] = Field(default_factory=dict, description="By run key.")

    def with_run(self, run_key: str, duration: Duration) -> Durations:
        """The durations with another run's, without those that are too old."""
        runs = sorted({**self.runs, run_key: duration}.items(), key=lambda item: (item[1].opened_at, item[0]))
        return self.model_copy(update={"runs": dict(runs[-KEPT:])})

    def seconds_for(self, steps: int) -> float | None:
        """Seconds that so many steps probably take; None when no run is known."""
        return median(run.seconds / run.steps for run in self.runs.values()) * steps if self.runs else None


def with_estimate(storage: Storage, work: str, plan: RunPlan, say: Say) -> RunPlan:
    """Return the plan with the estimate that earlier runs give, where its experiment gives none."""
    if plan.estimate_hours is not None:
        return plan
    uri = naming.durations_uri(work, plan.experiment)
    try:
        found = read_model(storage, uri, Durations)
    except IntegrityError as error:
        say(f"no estimate of its length: {error}")
        return plan
    durations = found[0] if found else Durations()
    seconds = durations.seconds_for(plan.trainer.steps)
    if seconds is None:
        return plan
    hours = min(seconds / 3600, plan.max_running_hours)
    usd = None if plan.planned_usd is None else plan.planned_usd * hours / plan.max_running_hours
    say(f"it probably trains for {hours:.2f} h: the median of the last {len(durations.runs)} runs of {plan.experiment}")
    return plan.model_copy(update={"estimate_hours": hours, "planned_usd": usd})


def remember_durations(storage: Storage, work: str, records: Sequence[Record], say: Say) -> None:
    """Keep how long the training of a run took which ended well; entered again, it changes nothing."""
    for record in records:
        plan = storage.read_json(f"{record.folder}/plan.json") if record.verdict is Verdict.SUCCEEDED else None
        if plan is None:  # a job beside the run's main one has no plan of its own
            continue
        seconds = sum(attempt.ran_seconds or 0.0 for attempt in record.attempts)
        steps = int(plan.value["trainer"]["steps"])
        took = Duration(seconds=seconds, steps=steps, opened_at=record.opened_at)
        uri, enter = naming.durations_uri(work, record.experiment), methodcaller("with_run", record.run_key, took)
        try:
            change_model(storage, uri, Durations(), enter)
        except IntegrityError as error:
            say(f"how long the run trained is not kept: {error}")
