"""AdamW, and a learning rate that is a function of the step alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch

from trainer.config import TrainerConfig
from trainer.layout import decays

FINAL_SHARE = 0.1
"""Share of the highest learning rate that is left at the last step."""


def build_optimizer(model: torch.nn.Module, config: TrainerConfig) -> torch.optim.AdamW:
    """Build AdamW; matrices decay, vectors (norms, biases) do not."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return adamw(
        [item for item in parameters if decays(item)], [item for item in parameters if not decays(item)], config
    )


def adamw(decayed: Sequence[torch.Tensor], others: Sequence[torch.Tensor], config: TrainerConfig) -> torch.optim.AdamW:
    """Build AdamW over tensors with weight decay and tensors without; its moments are there, all zero."""
    groups = [
        {"params": list(decayed), "weight_decay": config.weight_decay},
        {"params": list(others), "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=config.learning_rate, betas=(0.9, 0.95), fused=True)
    for parameter in optimized(optimizer):
        # What AdamW does by itself in its first step: a checkpoint is restored before there is one.
        optimizer.state[parameter] = {
            "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
            "exp_avg": torch.zeros_like(parameter, requires_grad=False),
            "exp_avg_sq": torch.zeros_like(parameter, requires_grad=False),
        }
    return optimizer


def optimized(optimizer: torch.optim.Optimizer) -> Iterable[torch.Tensor]:
    """Return the tensors of an optimizer, group after group."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def learning_rate(config: TrainerConfig, step: int) -> float:
    """Learning rate of `step`, counted from 1: linear warmup, then a cosine to a tenth of the highest."""
    if step <= config.warmup_steps:
        return config.learning_rate * step / config.warmup_steps
    done = (step - config.warmup_steps) / max(1, config.steps - config.warmup_steps)
    cosine = (1 + math.cos(math.pi * min(1.0, done))) / 2
    return config.learning_rate * (FINAL_SHARE + (1 - FINAL_SHARE) * cosine)


def set_learning_rate(optimizer: torch.optim.Optimizer, value: float) -> None:
    """Use `value` from the next step on."""
    for group in optimizer.param_groups:
        group["lr"] = value


def shrink(gradients: Sequence[torch.Tensor], norm: float, largest: float) -> None:
    """Scale gradients whose norm over all of them is `norm` down to the largest norm; 0 leaves them."""
    # As torch.nn.utils.clip_grad_norm_ does, whose norm is of this process alone.
    if largest and gradients and norm > largest:
        torch._foreach_mul_(list(gradients), largest / (norm + 1e-6))


def clipped_step(
    optimizer: torch.optim.Optimizer, gradients: Sequence[torch.Tensor], *, rate: float, norm: float, largest: float
) -> None:
    """Clip gradients as `shrink` does, and take a step at learning rate `rate`; the gradients stay."""
    shrink(gradients, norm, largest)
    set_learning_rate(optimizer, rate)
    optimizer.step()
