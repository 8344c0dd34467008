"""What changes while training, and therefore stands in a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from trainer.errors import UserError
from trainer.failures import out_of_memory
from trainer.replicas import Replicas


@dataclass
class TrainingState:
    """Weights, optimizer, and how far the run is. The learning rate follows from the step."""

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    step: int = 0
    """Steps done."""
    sequences: int = 0
    """Position in the endless sequence of training windows."""
    seconds: float = 0.0
    """Time spent in steps, over all attempts."""
    eval_loss_before: float = float("nan")
    """Evaluation loss before the first step."""

    def to_dict(self, replicas: Replicas) -> dict[str, Any]:
        """Everything to go on from here; all replicas must call, since each has a random state of its own."""
        random = {"cpu": torch.get_rng_state()}
        if replicas.device.type == "cuda":
            random["cuda"] = torch.cuda.get_rng_state()
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "sequences": self.sequences,
            "seconds": self.seconds,
            "eval_loss_before": self.eval_loss_before,
            "random": replicas.gather(random),
        }

    def restore(self, saved: dict[str, Any], replicas: Replicas) -> None:
        """Go on from a checkpoint.

        :raises UserError: when it is of another model.
        """
        try:
            self.model.load_state_dict(saved["model"])
            self.optimizer.load_state_dict(saved["optimizer"])
        except (RuntimeError, ValueError) as error:
            if out_of_memory(error):
                raise
            raise UserError(
                f"the checkpoint is of another model than trainer.model: {str(error).splitlines()[0]} "
                "Use another job-dir, or the settings that the run began with"
            ) from error
        self.step, self.sequences, self.seconds = saved["step"], saved["sequences"], saved["seconds"]
        self.eval_loss_before = saved["eval_loss_before"]
        # A replica that the run did not have before keeps the state that its seed gave it.
        if replicas.rank < len(saved["random"]):
            random = saved["random"][replicas.rank]
            torch.set_rng_state(random["cpu"])
            if replicas.device.type == "cuda" and "cuda" in random:
                torch.cuda.set_rng_state(random["cuda"])
