"""The champion that a run's model will have to beat: found when the run is resolved, named in its plan.

The trainer evaluates it on the run's own held-out text, while the GPUs are there, so that the gate compares both
models on the same text. Which text that is, is not known yet: the plan names the tokens of the champion's own loss,
and the trainer evaluates it again where those of the run are others.
"""

from __future__ import annotations

from trainops.config.plan import PlannedChampion, RunPlan
from trainops.gcp.storage import Storage
from trainops.settings import Settings
from trainops.steps.channels import read_channel


def find_champion(storage: Storage, plan: RunPlan, settings: Settings) -> PlannedChampion | None:
    """Return the version that the plan's channel points at now.

    :raises IntegrityError: the channel's object is no pointer.
    """
    channel = read_channel(storage, settings.models, plan.promotion.model, plan.promotion.channel)
    if channel.pointer is None:
        return None
    pointer = channel.pointer
    return PlannedChampion(
        version=pointer.version, uri=pointer.uri, heldout=pointer.heldout, pointer_generation=channel.generation
    )
