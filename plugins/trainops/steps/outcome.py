"""What a training job left, checked: is everything there, whole and plausible? Written to the run's `outcome.json`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, ValidationError, model_serializer

from trainops import naming
from trainops.config.plan import RunPlan
from trainops.errors import OutputsMissing
from trainops.gcp.storage import ObjectInfo, Storage
from trainops.settings import Settings, load_settings
from trainops.steps.lineage import Lineage, trace_lineage
from trainops.steps.model_folder import list_model, model_problems
from trainops.steps.stored_json import read_model, settle


class ModelFile(BaseModel):
    """One object of a model folder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(description="Path inside the folder.")
    bytes: int = Field(description="Size.")
    crc32c: str = Field(description="Base64 of the big-endian CRC32C, as Cloud Storage shows it.")


class Generation(BaseModel):
    """What the exported model wrote, once the trainer had loaded it from its files."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    loaded: bool = Field(description="Whether transformers loaded it.")
    tokens: int = Field(default=0, description="Tokens that it generated.")
    characters: int = Field(default=0, description="Characters of its text, without white space at both ends.")
    finite: bool | None = Field(default=None, description="Whether all its predictions were finite; None: none made.")
    error: str | None = Field(default=None, description="Why it does not load or generate.")


class ChampionEvaluation(BaseModel):
    """The champion's loss on the held-out text of the run that wants to replace it, in nats."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    version: str = Field(description="Version that was evaluated.")
    uri: str = Field(description="Its folder.")
    tokens: str = Field(description="Folder of the tokens whose held-out part is meant.")
    eval_loss: float | None = Field(
        default=None, description="Per token: of the run's tokenizer, unless `loss_per_byte` is set."
    )
    eval_tokens: int | None = Field(default=None, description="Tokens that the loss is the mean of.")
    loss_per_byte: float | None = Field(
        default=None, description="Per byte of the text, where its tokenizer is another than the run's."
    )
    own_loss_per_byte: float | None = Field(default=None, description="The run's own model's, of the same text.")
    error: str | None = Field(default=None, description="Why it could not be evaluated.")


class TrainingResult(BaseModel):
    """`result.json`, which the trainer writes last."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    status: Literal["succeeded"] = Field(description="Only this word stands in the result of a finished training.")
    step: int = Field(description="Steps trained.")
    steps: int = Field(description="Steps asked for.")
    tokens: int = Field(description="Tokens trained on.")
    train_seconds: float = Field(description="Time spent in training steps, in seconds.")
    tokens_per_second: float = Field(description="Over all replicas.")
    parameters: int = Field(description="Parameters of the model.")
    replicas: int = Field(description="Processes that trained.")
    eval_loss_before: float | None = Field(default=None, description="Nats per token before the first step.")
    eval_loss: float = Field(description="Nats per token over the held-out tokens.")
    eval_tokens: int = Field(description="Held-out tokens that the loss is the mean of.")
    unigram_entropy: float = Field(description="Nats per token of the same held-out tokens without any context.")
    sample: str = Field(default="", description="Text that the model continued.")
    model: str = Field(description="URI of the model folder.")
    resumed_from: int | str | None = Field(default=None, description="Checkpoint that the last attempt started from.")
    generation: Generation | None = Field(default=None, description="What the exported model wrote; None: not tried.")
    champion: ChampionEvaluation | None = Field(
        default=None,
        description="The champion on the same held-out text; None: its own loss is of it, or there is none.",
    )

    @model_serializer(mode="wrap")
    def _as_before(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without what was not measured: a decision knows its outcome by this form's fingerprint, older ones too."""
        return {key: value for key, value in dump(self).items() if value is not None or key not in _LATER}


_LATER = {"generation", "champion"}
"""Fields that came after the first results were stored."""


class LossCurve(BaseModel):
    """What `metrics.jsonl` tells about the losses, in nats per token."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    logged: int = Field(description="Lines with a loss.")
    first: float = Field(description="First training loss.")
    last: float = Field(description="Last training loss.")
    last_step: int = Field(description="Step of the last line.")


class Outcome(BaseModel):
    """What a generation left, after every check passed."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_version: Literal[1] = Field(default=1, alias="schema", description="Version of this layout.")
    experiment: str = Field(description="Experiment.")
    run_key: str = Field(description="Run.")
    generation: int = Field(description="Generation of the run.")
    folder: str = Field(description="Model folder that the job wrote.")
    files: tuple[ModelFile, ...] = Field(description="Its objects, by name.")
    result: TrainingResult = Field(description="`result.json`.")
    losses: LossCurve = Field(description="Summary of `metrics.jsonl`.")
    bytes_per_token: float | None = Field(description="Of the held-out text; None when the tokens have no manifest.")
    lineage: Lineage = Field(description="Where it came from.")

    def to_json(self) -> dict[str, Any]:
        """The JSON that is stored."""
        return self.model_dump(mode="json", by_alias=True)


def check_outputs(storage: Storage, plan: RunPlan, generation: int, settings: Settings | None = None) -> Outcome:
    """Check what a generation left, and write it down; the same outputs give the same `outcome.json`.

    :param settings: without them those of the plan's environment.
    :raises OutputsMissing: names everything that is missing, broken or implausible.
    """
    work = (settings or load_settings(plan.environment)).work
    folder = naming.generation_folder(work, plan.experiment, plan.run_key, generation)
    result, problems = _check_result(storage, folder, plan)
    curve, curve_problems = _check_metrics(storage, folder)
    objects = list_model(storage, f"{folder}/model")
    problems += curve_problems + model_problems(storage, objects)
    if problems or result is None or curve is None:
        raise OutputsMissing(f"{folder}: {'; '.join(problems)}")
    run_folder = naming.run_folder(work, plan.experiment, plan.run_key)
    lineage = trace_lineage(storage, run_folder, folder, plan)
    outcome = _outcome(plan, generation, objects, result, curve, lineage, storage)
    settle(storage, outcome_uri(work, plan), outcome.to_json())
    return outcome


def outcome_uri(work: str, plan: RunPlan) -> str:
    """Object that holds what `check_outputs` found."""
    return f"{naming.run_folder(work, plan.experiment, plan.run_key)}/outcome.json"


def read_outcome(storage: Storage, plan: RunPlan, generation: int, settings: Settings) -> Outcome:
    """Return what `check_outputs` found for this generation.

    :raises OutputsMissing: it has not run for this generation.
    """
    uri = outcome_uri(settings.work, plan)
    found = read_model(storage, uri, Outcome)
    if found is None or found[0].generation != generation:
        was = "missing" if found is None else f"that of generation {found[0].generation}"
        raise OutputsMissing(f"{uri} is {was}; clear check_outputs, so that it looks at generation {generation}")
    return found[0]


def _check_result(storage: Storage, folder: str, plan: RunPlan) -> tuple[TrainingResult | None, list[str]]:
    document = storage.read_json(f"{folder}/result.json")
    if document is None:
        return None, ["result.json is missing"]
    try:
        result = TrainingResult.model_validate(document.value)
    except ValidationError as error:
        details = error.errors(include_url=False)
        return None, [f"result.json: {'.'.join(map(str, item['loc']))}: {item['msg']}" for item in details]
    return result, _result_problems(result, folder, plan)


def _result_problems(result: TrainingResult, folder: str, plan: RunPlan) -> list[str]:
    problems = []
    for name in ("eval_loss", "eval_loss_before", "unigram_entropy"):
        value = getattr(result, name)
        if value is not None and not math.isfinite(value):
            problems.append(f"result.json: {name} is {value}")
    if result.steps != plan.trainer.steps:
        problems.append(f"result.json is of a training of {result.steps} steps, the plan asks for {plan.trainer.steps}")
    if result.step < result.steps:
        problems.append(f"the training stopped at step {result.step} of {result.steps}")
    if result.model.rstrip("/") != f"{folder}/model":
        problems.append(f"result.json: the model is {result.model}, not this generation's {folder}/model")
    return problems


def _check_metrics(storage: Storage, folder: str) -> tuple[LossCurve | None, list[str]]:
    blob = storage.read_bytes(f"{folder}/metrics.jsonl")
    if blob is None:
        return None, ["metrics.jsonl is missing"]
    return read_curve(blob.data)


def read_curve(text: bytes) -> tuple[LossCurve | None, list[str]]:
    """Return the summary of `metrics.jsonl` and what is wrong with it."""
    problems: list[str] = []
    steps: list[int] = []
    losses: list[float] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            step, found = int(entry["step"]), [float(entry[name]) for name in ("loss", "eval_loss") if name in entry]
        except (ValueError, TypeError, KeyError):
            problems.append(f"metrics.jsonl: line {number} is not a line of metrics")
            continue
        problems += [f"metrics.jsonl: the loss of step {step} is {loss}" for loss in found if not math.isfinite(loss)]
        steps.append(step)
        if "loss" in entry:
            losses.append(float(entry["loss"]))
    if not losses:
        return None, [*problems, "metrics.jsonl holds no training loss"]
    shown = problems[:3] + ([f"metrics.jsonl: {len(problems) - 3} more such lines"] if len(problems) > 3 else [])
    return LossCurve(logged=len(losses), first=losses[0], last=losses[-1], last_step=max(steps)), shown


def _outcome(
    plan: RunPlan,
    generation: int,
    objects: Mapping[str, ObjectInfo],
    result: TrainingResult,
    curve: LossCurve,
    lineage: Lineage,
    storage: Storage,
) -> Outcome:
    files = [ModelFile(name=name, bytes=info.size, crc32c=info.crc32c) for name, info in sorted(objects.items())]
    return Outcome(
        experiment=plan.experiment,
        run_key=plan.run_key,
        generation=generation,
        folder=result.model.rstrip("/"),
        files=tuple(files),
        result=result,
        losses=curve,
        bytes_per_token=_bytes_per_token(storage, lineage.tokens),
        lineage=lineage,
    )


def _bytes_per_token(storage: Storage, tokens: str | None) -> float | None:
    """Bytes of text per token, which makes losses under different tokenizers comparable."""
    manifest = storage.read_json(f"{tokens.rstrip('/')}/manifest.json") if tokens else None
    return None if manifest is None else float(manifest.value["bytes_per_token"])
