"""The plan of a run: all that its tasks need to know, frozen when the run starts and written as `g{G}/plan.json`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import AwareDatetime, ConfigDict, Field

from trainops.config.candidates import PlanCandidate
from trainops.config.dataset import Dataset
from trainops.config.experiment import Model, Promotion, Tokenizer, Training
from trainops.config.later_fields import LaterFields
from trainops.config.model import Config, Day
from trainops.naming import fingerprint
from trainops.validation import validated


class RunMoment(Config):
    """Which run of which DAG, and when."""

    dag_id: str = Field(min_length=1, description="Id of the DAG.")
    run_id: str = Field(min_length=1, description="Id of the DAG run.")
    logical_date: AwareDatetime | None = Field(None, description="Logical date; a run from the CLI may have none.")
    run_after: AwareDatetime = Field(description="Moment after which the run could start; every run has one.")

    @property
    def moment(self) -> datetime:
        """The logical date, else `run_after`, in UTC."""
        return (self.logical_date or self.run_after).astimezone(UTC)


class Trainer(Training):
    """What the trainer is told: the model's shape and how to train it."""

    model: Model = Field(description="Shape of the language model.")


class PlannedChampion(Config):
    """The version that a run's model has to beat, as the channel pointed at it when the run was resolved."""

    version: str = Field(description="Version.")
    uri: str = Field(description="Its Hugging Face folder.")
    heldout: str | None = Field(None, description="Folder of the tokens on which it was evaluated.")
    pointer_generation: int = Field(description="Storage generation of the channel's pointer.")


class RunPlan(Config, LaterFields):
    """One run, resolved: experiment, conf and date in one."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, serialize_by_alias=True, validate_by_alias=True
    )

    LATER = frozenset({
        "candidates", "max_spot_losses", "on_demand_after_hours", "max_usd", "planned_usd", "champion",
    })  # fmt: skip

    schema_version: Literal[1] = Field(1, alias="schema", description="Version of this file's form.")
    experiment: str = Field(description="Name of the experiment.")
    dag_id: str = Field(description="Id of the DAG.")
    run_id: str = Field(description="Id of the DAG run.")
    run_key: str = Field(description="Key of the run in labels and paths.")
    data_date: Day = Field(description="Day whose data is read.")
    timezone: str = Field("UTC", description="IANA time zone of the schedule.")
    environment: str = Field(description="Name of the environment.")
    owner: str = Field(description="Who answers for the experiment.")
    dataset: Dataset = Field(description="Where the text lies.")
    tokenizer: Tokenizer = Field(description="How text becomes tokens.")
    trainer: Trainer = Field(description="Model and training.")
    training_input: dict[str, Any] = Field(description="Machines of the training job, as a TrainingInput.")
    tokenize_input: dict[str, Any] = Field(description="Machine of the tokenizing job, as a TrainingInput.")
    priority: int = Field(description="Priority class in the GPU queue: larger goes first.")
    estimate_hours: float | None = Field(description="Expected hours of training.")
    max_running_hours: float = Field(description="Hours of running after which the job is cancelled.")
    max_waiting_hours: float = Field(description="Hours in the queue after which the run gives up.")
    candidates: list[PlanCandidate] = Field(
        default_factory=list, description="Other machines of the training job, in the order in which they are tried."
    )
    max_spot_losses: int | None = Field(None, description="Spot machines are given up after so many losses.")
    on_demand_after_hours: float | None = Field(None, description="No attempt begins on Spot after so many hours.")
    max_usd: float | None = Field(None, description="What the training may cost, in US dollars by the price list.")
    planned_usd: float | None = Field(None, description="What it probably costs; null: it has no price.")
    promotion: Promotion = Field(description="What the model must show, and where it goes.")
    conf: dict[str, Any] = Field(description="What the run changed of its experiment.")
    promoted_models: dict[str, str] = Field(
        default_factory=dict,
        description="Promoted models that the run goes on from, as its experiment names them (MODEL@CHANNEL), and the "
        "folder of the version that each was when the run was resolved.",
    )
    champion: PlannedChampion | None = Field(
        None, description="Model to beat, which the trainer evaluates on the run's own held-out text; null: none yet."
    )

    @property
    def tokenizer_sha16(self) -> str:
        """Identity of the tokenizer's settings: 16 hex digits."""
        return fingerprint(self.tokenizer.model_dump(mode="json"))

    def to_json(self) -> dict[str, Any]:
        """Return the plan as `plan.json` holds it."""
        return self.model_dump(mode="json")

    @classmethod
    def from_json(cls, value: Mapping[str, Any], source: str = "plan.json") -> RunPlan:
        """Return the plan that `to_json` made.

        :raises ConfigError: it was written by another version, or changed by hand.
        """
        return validated(cls, dict(value), source=source)
