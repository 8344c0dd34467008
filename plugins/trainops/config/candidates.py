"""Other machines that a run may take when those of its experiment are not to be had, in the user's order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from trainops.config.conf import RunConf
from trainops.config.gpu_pools import GpuPools, Provisioning
from trainops.config.machines import STRATEGIES, check_machines, moved, provisioning, with_conf
from trainops.config.model import Config
from trainops.errors import ConfigError
from trainops.jobspec.translate import Translation
from trainops.settings import Settings

TAKEN_AT_ITS_WORD = ("accelerator_type", "machine_type", "region")
"""A conf that names one of these wants these machines, and no others."""


class CandidateMachines(Config):
    """How a candidate differs from the machines of `training_input`."""

    region: str | None = Field(None, pattern=r"^[a-z]+-[a-z]+[0-9]+$", description="Region; null: the same.")
    accelerator_type: str | None = Field(None, min_length=1, description="Accelerator; null: the same.")
    accelerator_count: int | None = Field(None, ge=1, le=64, description="Accelerators per replica; null: as many.")
    machine_type: str | None = Field(None, min_length=1, description="Machine of every replica; null: the same.")
    provisioning: Provisioning | None = Field(None, description="standard, spot or flex_start; null: the same.")


class PlanCandidate(Config):
    """Other machines of a run, resolved."""

    training_input: dict[str, Any] = Field(description="Machines, as a TrainingInput.")
    after_spot: bool = Field(False, description="Taken only once Spot machines were given up.")


def candidates_of(
    machines: dict[str, Any], given: Sequence[CandidateMachines], conf: RunConf, *, source: str
) -> list[PlanCandidate]:
    """Return the TrainingInput of every candidate.

    :param machines: those of the experiment, before the conf.
    :param conf: what it says of the number of GPUs and workers counts for each; one that names machines or a region
        is taken at its word, and there are no candidates.
    :raises ConfigError: a candidate changes nothing, is there twice, or cannot be.
    """
    if conf.accelerator_count == 0 or any(getattr(conf, key) is not None for key in TAKEN_AT_ITS_WORD):
        return []
    found = [machines]
    for number, item in enumerate(given):
        changed = _changed(machines, item, source, f"queue.candidates.{number}")
        if changed in found:
            raise ConfigError(
                "the same machines stand before it", source=source, key=f"queue.candidates.{number}",
                value=item.model_dump(exclude_none=True), next_step="say what differs, or remove it",
            )  # fmt: skip
        found.append(changed)
    counts = RunConf(accelerator_count=conf.accelerator_count, worker_count=conf.worker_count)
    return [PlanCandidate(training_input=with_conf(item, counts)) for item in found[1:]]


def check_candidates(
    first: Translation, candidates: Sequence[PlanCandidate], settings: Settings, pools: GpuPools, *, source: str
) -> list[Translation]:
    """Translate every candidate, and see whether its GPUs have a pool.

    :param first: the machines of the experiment.
    :raises ConfigError: as `check_machines`, or some take GPUs and others none.
    """
    checked = []
    for number, item in enumerate(candidates):
        key = f"queue.candidates.{number}"
        translation = check_machines(item.training_input, settings, pools, source=source, key=key)
        if bool(translation.accelerators) != bool(first.accelerators):
            raise ConfigError(
                "all candidates take GPUs, or none does", source=source, key=key,
                value=dict(translation.accelerators) or "no GPUs", next_step="make two experiments of it",
            )  # fmt: skip
        checked.append(translation)
    return checked


def on_demand_after_spot(
    machines: dict[str, Any], translated: Sequence[Translation], *, wanted: str, source: str
) -> list[PlanCandidate]:
    """Return what a run takes once Spot machines were given up: the first choice on demand, unless one is already.

    :param machines: the TrainingInput of the first choice.
    :param translated: all choices.
    :param wanted: key of `queue` that says when Spot is given up; empty when it never is.
    :raises ConfigError: Spot is to be given up, and no choice is on Spot.
    """
    if not wanted:
        return []
    models = [provisioning(item.job) for item in translated]
    if "spot" not in models:
        raise ConfigError(
            "no machines are Spot", source=source, key=f"queue.{wanted}",
            next_step="set training_input.vertex.strategy: SPOT or a candidate's provisioning: spot, or leave it out",
        )  # fmt: skip
    if "standard" in models:
        return []
    return [PlanCandidate(training_input=_provisioned(machines, "standard"), after_spot=True)]


def _changed(machines: dict[str, Any], item: CandidateMachines, source: str, key: str) -> dict[str, Any]:
    given = item.model_dump(exclude_none=True, exclude={"provisioning"})
    try:
        changed = with_conf(machines, RunConf(**given))
    except ConfigError as error:
        raise moved(error, source, f"{key}.{error.key}") from error
    return changed if item.provisioning is None else _provisioned(changed, item.provisioning)


def _provisioned(machines: dict[str, Any], model: Provisioning) -> dict[str, Any]:
    extras = {**machines.get("vertex", {}), "strategy": STRATEGIES[model]}
    if model != "flex_start":
        extras.pop("maxWaitDuration", None)
    return {**machines, "vertex": extras}
