"""The evaluation loss: mean cross-entropy in nats per token over the held-out windows."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import cross_entropy

from trainer.data import UNCOUNTED, Batch, HeldOutWindows
from trainer.errors import UserError
from trainer.replicas import Replicas

FULL_WINDOWS = 512
"""Windows of the full evaluation, at most: the first ones."""


def summed_loss(model: torch.nn.Module, batch: Batch) -> torch.Tensor:
    """Sum of the cross-entropy, in nats, of every target of `batch` that counts."""
    logits: Any = model(input_ids=batch.inputs, use_cache=False).logits
    targets = batch.targets.flatten()
    return cross_entropy(logits.float().flatten(0, 1), targets, reduction="sum", ignore_index=UNCOUNTED)


@torch.no_grad()
def evaluate(
    model: torch.nn.Module, windows: HeldOutWindows, replicas: Replicas, *, count: int, batch_size: int
) -> tuple[float, int]:
    """Evaluate on the first `count` windows, shared among the workers; return nats per token and tokens.

    :raises UserError: when the loss counts none of their tokens.
    """
    model.eval()
    numbers = range(windows.count)[:count]
    own = numbers[replicas.rank :: replicas.workers]
    nats, tokens = 0.0, 0
    # As many batches on every worker: where the model is sharded, each needs all others to compute one.
    for first in range(0, -(-len(numbers) // replicas.workers), batch_size):
        part = own[first : first + batch_size]
        batch = windows.read(part or numbers[:1]).to(replicas.device)
        loss = summed_loss(model, batch)
        if part:
            nats += float(loss)
            tokens += batch.counted
    model.train()
    nats, total = replicas.sum([nats, float(tokens)], workers_only=True)
    if not total:
        raise UserError(
            f"the first {count} held-out windows hold nothing of a response; raise trainer.model.context, or shorten "
            "the prompts"
        )
    return nats / total, int(total)
