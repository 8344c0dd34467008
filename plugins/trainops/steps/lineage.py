"""Where a model came from: tokens, dataset, package, job and attempts, as the records of its run tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from trainops.config.plan import RunPlan
from trainops.gcp.storage import Storage
from trainops.jobspec.installation import installed_packages
from trainops.policy.record import Record
from trainops.steps.record_store import records_below


class Lineage(BaseModel):
    """What a model was made of. A field is None where no record tells it, such as after a run by hand."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    plan: str = Field(description="URI of the plan of the generation.")
    tokens: str | None = Field(
        default=None, description="Folder of the tokens: trained on the one part, evaluated on the other."
    )
    dataset_sha16: str | None = Field(default=None, description="Content hash of the staged dataset.")
    tokenizer_sha16: str | None = Field(default=None, description="Fingerprint of the tokenizer's configuration.")
    packages: tuple[str, ...] = Field(
        default=(), description="URIs of the trainer's packages; the folder is the content hash."
    )
    base_model: str | None = Field(
        default=None, description="Folder of the model that training went on from; None: it began with random weights."
    )
    base_model_asked: str | None = Field(
        default=None, description="What the experiment called it, MODEL@CHANNEL; None: it named the folder."
    )
    image: str | None = Field(default=None, description="Container image that the trainer ran in.")
    job_key: str | None = Field(default=None, description="Job key of the training.")
    jobs: tuple[str, ...] = Field(
        default=(), description="Names of the jobs submitted, in order; the last one finished."
    )
    attempts: int = Field(default=0, description="Jobs that it took.")


def trace_lineage(storage: Storage, run_folder: str, generation_folder: str, plan: RunPlan) -> Lineage:
    """Return the lineage of one generation's training, out of its plan and the record of the job that read tokens."""
    base, names = plan.trainer.init_from, {folder: name for name, folder in plan.promoted_models.items()}
    lineage = Lineage(
        plan=f"{generation_folder}/plan.json", base_model=base, base_model_asked=names.get(base) if base else None
    )
    record = _training_record(storage, run_folder, generation_folder)
    return lineage if record is None else lineage.model_copy(update=_from_record(record))


def _from_record(record: Record) -> dict[str, Any]:
    tokens = _argument(record, "--tokens")
    dataset, _, tokenizer = (tokens or "").rstrip("/").rpartition("/")[2].partition("-")
    return {
        "tokens": tokens,
        "dataset_sha16": dataset or None,
        "tokenizer_sha16": tokenizer or None,
        "packages": _packages(record),
        "image": _image(record),
        "job_key": record.job_key,
        "jobs": tuple(attempt.job_name for attempt in record.attempts if attempt.job_name),
        "attempts": len(record.attempts),
    }


def _training_record(storage: Storage, run_folder: str, generation_folder: str) -> Record | None:
    for store in records_below(storage, run_folder):
        record = store.load()
        if record.folder.rstrip("/") == generation_folder and _argument(record, "--tokens"):
            return record
    return None


def _packages(record: Record) -> tuple[str, ...]:
    program = _program(record)
    return tuple(program["packageUris"]) if "packageUris" in program else installed_packages(program)


def _image(record: Record) -> str | None:
    program = _program(record)
    return program.get("executorImageUri") or program.get("imageUri")


def _argument(record: Record, name: str) -> str | None:
    arguments: Sequence[str] = _program(record).get("args", [])
    for position, argument in enumerate(arguments):
        if argument == name and position + 1 < len(arguments):
            return arguments[position + 1]
        if argument.startswith(f"{name}="):
            return argument.removeprefix(f"{name}=")
    return None


def _program(record: Record) -> Mapping[str, Any]:
    """What the master runs; all replicas run the same package, so one tells all."""
    for pool in record.spec.get("jobSpec", {}).get("workerPoolSpecs", [])[:1]:
        found: Mapping[str, Any] = pool.get("pythonPackageSpec") or pool.get("containerSpec") or {}
        return found
    return {}
