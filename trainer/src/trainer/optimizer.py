"""AdamW, and a learning rate that is a function of the step alone."""

from __future__ import annotations

import math

import torch

from trainer.config import TrainerConfig

FINAL_SHARE = 0.1
"""Share of the highest learning rate that is left at the last step."""


def build_optimizer(model: torch.nn.Module, config: TrainerConfig) -> torch.optim.AdamW:
    """Build AdamW; matrices decay, vectors (norms, biases) do not."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [item for item in parameters if item.dim() >= 2], "weight_decay": config.weight_decay},
        {"params": [item for item in parameters if item.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=(0.9, 0.95), fused=True)


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
