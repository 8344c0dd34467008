"""The conf of one run: `airflow dags trigger --conf`, the trigger form, and `trainops plan --conf` all take it.

It is flat, so that the form can show it, and every key is optional: what is absent stays as the experiment has it.
`RunConf.model_json_schema()` carries title, description, section and examples of each key.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from trainops.config.model import Config, Day
from trainops.config.priority import Priority

CONF = "conf"
"""Source that errors in the conf are told with."""

HARDWARE = ("accelerator_type", "accelerator_count", "machine_type", "worker_count", "region")
"""Keys that change the machines of the training job."""


def _key(section: str, title: str, description: str, examples: list[Any], **limits: Any) -> Any:
    return Field(
        None,
        title=title,
        description=description,
        examples=examples,
        json_schema_extra={"section": section},
        **limits,
    )


class RunConf(Config):
    """What a run may change of its experiment."""

    data_date: Day | None = _key(
        "Data",
        "Data date",
        "Train on the data of this day (YYYY-MM-DD); else of the day before the run, in the schedule's time zone.",
        ["2026-11-29"],
    )
    dataset: str | None = _key("Data", "Dataset", "Name of a file in datasets/.", ["stdlib"], min_length=1)
    steps: int | None = _key("Training", "Steps", "Optimizer steps.", [50, 600], ge=1, le=100_000_000)
    batch_size: int | None = _key(
        "Training", "Batch size", "Sequences per step, over all replicas.", [16, 64], ge=1, le=1_000_000
    )
    learning_rate: float | None = _key(
        "Training", "Learning rate", "Peak learning rate, after the warm-up.", [0.003, 0.0003], gt=0, le=1
    )
    seed: int | None = _key("Training", "Seed", "Seed of weights and data order.", [0, 1], ge=0, lt=2**32)
    accelerator_type: str | None = _key(
        "Machines", "GPU", "Accelerator of every replica.", ["NVIDIA_TESLA_T4", "NVIDIA_L4"], min_length=1
    )
    accelerator_count: int | None = _key(
        "Machines", "GPUs per replica", "Accelerators of each replica; 0 trains on CPUs.", [1, 2], ge=0, le=64
    )
    machine_type: str | None = _key(
        "Machines", "Machine type", "Machine of every replica.", ["n1-standard-8", "g2-standard-8"], min_length=1
    )
    worker_count: int | None = _key(
        "Machines", "Workers", "Replicas beside the master; 0 trains on the master alone.", [0, 1, 9], ge=0, le=1000
    )
    region: str | None = _key(
        "Machines", "Region", "Region that the job runs in.", ["us-central1"], pattern=r"^[a-z]+-[a-z]+[0-9]+$"
    )
    priority: Priority | None = _key(
        "Queue",
        "Priority",
        "Priority class in the GPU queue: low, normal, high, urgent, or 0 to 100; larger goes first.",
        ["high", 90],
    )
    max_usd: float | None = _key(
        "Queue", "Cost cap", "What the training may cost, in US dollars by the price list.", [25.0], gt=0
    )
    max_eval_loss: float | None = _key(
        "Promotion", "Largest loss", "Promote only at or below this evaluation loss, in nats per token.", [4.0], gt=0
    )
    promote: Literal["auto", "never"] | None = _key(
        "Promotion",
        "Promote",
        "auto: promote when the gate says so; never: train and check, and leave the channel alone.",
        ["auto", "never"],
    )
    note: str | None = _key(
        "Promotion", "Note", "Why this run was started; kept in its plan.", ["tries a larger batch"], max_length=500
    )

    def given(self) -> dict[str, Any]:
        """Return the keys that were set, as JSON values."""
        return self.model_dump(mode="json", exclude_none=True)
