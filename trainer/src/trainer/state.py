"""What changes while training beside weights and moments, and therefore stands in a checkpoint, too."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch


@dataclass
class TrainingState:
    """How far the run is. The learning rate follows from the step."""

    step: int = 0
    """Steps done."""
    sequences: int = 0
    """Position in the endless sequence of training windows."""
    seconds: float = 0.0
    """Time spent in steps, over all attempts."""
    eval_loss_before: float = float("nan")
    """Evaluation loss before the first step."""

    def restore(self, record: Mapping[str, Any]) -> None:
        """Go on from what a checkpoint says."""
        self.step, self.sequences, self.seconds = record["step"], record["sequences"], record["seconds"]
        self.eval_loss_before = record["eval_loss_before"]


def random_state(device: torch.device) -> dict[str, str]:
    """Return the state of this process's random numbers, as text."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return encode_random(state)


def encode_random(state: Mapping[str, torch.Tensor]) -> dict[str, str]:
    """Write the states of random numbers as text."""
    return {name: base64.b64encode(values.numpy().tobytes()).decode() for name, values in state.items()}


def restore_random(state: Mapping[str, str], device: torch.device) -> None:
    """Go on with the random numbers of such a state."""
    decoded = {name: torch.tensor(list(base64.b64decode(text)), dtype=torch.uint8) for name, text in state.items()}
    torch.set_rng_state(decoded["cpu"])
    if device.type == "cuda" and "cuda" in decoded:
        torch.cuda.set_rng_state(decoded["cuda"], device)
