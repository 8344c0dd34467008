"""The evaluation loss: mean cross-entropy in nats per token over the held-out windows."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import cross_entropy

from trainer.data import HeldOutWindows
from trainer.replicas import Replicas

FULL_WINDOWS = 512
"""Windows of the full evaluation, at most: the first ones."""


def summed_loss(model: torch.nn.Module, rows: torch.Tensor) -> torch.Tensor:
    """Sum of the cross-entropy, in nats, of every token of `rows` but the first in each."""
    logits: Any = model(input_ids=rows[:, :-1], use_cache=False).logits
    return cross_entropy(logits.float().flatten(0, 1), rows[:, 1:].flatten(), reduction="sum")


@torch.no_grad()
def evaluate(
    model: torch.nn.Module, windows: HeldOutWindows, replicas: Replicas, *, count: int, batch_size: int
) -> tuple[float, int]:
    """Evaluate on the first `count` windows, shared among the replicas; return nats per token and tokens."""
    model.eval()
    own = range(windows.count)[:count][replicas.rank :: replicas.size]
    nats, tokens = 0.0, 0
    for first in range(0, len(own), batch_size):
        rows = windows.read(own[first : first + batch_size]).to(replicas.device)
        nats += float(summed_loss(model, rows))
        tokens += rows[:, 1:].numel()
    model.train()
    nats, total = replicas.sum([nats, float(tokens)])
    return nats / total, int(total)
