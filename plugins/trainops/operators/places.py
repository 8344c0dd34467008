"""Where a job may run besides its first choice: what a plan says, or the operator's own arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trainops.errors import ConfigError
from trainops.operators.training_fields import whole_training_input

if TYPE_CHECKING:
    from trainops.operators.mlengine import MLEngineStartTrainingJobOperator


def planned_places(plan: Mapping[str, Any]) -> dict[str, Any]:
    """What a `JobRequest` gets of a plan."""
    from trainops.steps.start import CandidateInput

    return {
        "candidates": tuple(CandidateInput(**item) for item in plan.get("candidates", ())),
        "max_spot_losses": plan.get("max_spot_losses"),
        "spot_hours": plan.get("on_demand_after_hours"),
        "max_usd": plan.get("max_usd"),
    }


def given_places(operator: MLEngineStartTrainingJobOperator) -> dict[str, Any]:
    """What a `JobRequest` gets of the operator's arguments.

    :raises ConfigError: `candidates` is no list of mappings.
    """
    from trainops.steps.start import CandidateInput

    given = operator.candidates or []
    if not isinstance(given, list) or not all(isinstance(item, Mapping) and item for item in given):
        raise ConfigError(
            "candidates are a list of what differs in each", source=operator.task_id, key="candidates", value=given,
            next_step='give it like [{"region": "us-east1"}]',
        )  # fmt: skip
    changes = [whole_training_input(operator, item) for item in given]
    return {
        "candidates": tuple(CandidateInput(training_input=item) for item in changes),
        "max_spot_losses": operator.max_spot_losses,
        "max_usd": operator.max_usd,
    }
