"""Windows of tokens, and the order in which training sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch

from trainer.errors import UserError
from trainer.shards import Mask, Tokens

UNCOUNTED = -100
"""Target of a token that the loss does not count; the number that torch's and Hugging Face's losses pass over."""


@dataclass(frozen=True)
class Batch:
    """Windows, one a row: each token of `inputs` is to predict the one of `targets` in the same place."""

    inputs: torch.Tensor
    targets: torch.Tensor

    @property
    def counted(self) -> int:
        """Number of targets that the loss counts."""
        return int((self.targets != UNCOUNTED).sum())

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device."""
        return Batch(self.inputs.to(device), self.targets.to(device))


class HeldOutWindows:
    """Consecutive windows of `context` + 1 tokens that step by `context`; the incomplete last one is dropped."""

    def __init__(self, tokens: Tokens, context: int, mask: Mask | None = None) -> None:
        self._tokens, self._mask = tokens, mask
        self._context = context
        self.count = _whole_windows(tokens, context, "held-out")

    def read(self, numbers: Sequence[int]) -> Batch:
        """Read windows by their numbers, one a row."""
        return _batch(self._tokens, self._mask, [number * self._context for number in numbers], self._context)


class TrainingWindows:
    """The endless sequence of training windows.

    It depends on the seed alone, so that any number of replicas, and a resumed run, see the same windows in the same
    order. Every epoch visits every window once, in an order and at an offset of its own.
    """

    def __init__(self, tokens: Tokens, context: int, seed: int, mask: Mask | None = None) -> None:
        self._tokens, self._mask = tokens, mask
        self._context = context
        self._epoch_size = max(1, _whole_windows(tokens, context, "training") - 1)
        self._starts = lru_cache(maxsize=2)(self._epoch_starts)
        self._seed = seed

    def read(self, first: int, end: int) -> Batch:
        """Read the windows of positions `first` to `end` - 1 of the sequence, one a row."""
        return _batch(self._tokens, self._mask, self.starts(first, end), self._context)

    def starts(self, first: int, end: int) -> list[int]:
        """Return the tokens at which those windows begin."""
        places = [divmod(position, self._epoch_size) for position in range(first, end)]
        return [int(self._starts(epoch)[place]) for epoch, place in places]

    def counted(self, first: int, end: int) -> int:
        """Return how many targets of those windows the loss counts."""
        if self._mask is None:
            return (end - first) * self._context
        starts = self.starts(first, end)
        return sum(int(self._mask[start + 1 : start + self._context + 1].sum()) for start in starts)

    def _epoch_starts(self, epoch: int) -> npt.NDArray[np.int64]:
        random = np.random.default_rng([self._seed, epoch])
        offset = random.integers(0, len(self._tokens) - self._epoch_size * self._context)
        return np.asarray(random.permutation(self._epoch_size) * self._context + offset)


def _whole_windows(tokens: Tokens, context: int, split: str) -> int:
    count = (len(tokens) - 1) // context
    if count < 1:
        raise UserError(
            f"trainer.model.context: the {split} tokens are {len(tokens)}, too few for one window of {context} + 1 "
            "tokens; add documents or choose a shorter context"
        )
    return count


def _batch(tokens: Tokens, mask: Mask | None, starts: Sequence[int], context: int) -> Batch:
    rows = np.stack([tokens[start : start + context + 1] for start in starts]).astype(np.int64)
    targets = rows[:, 1:]
    if mask is not None:
        counted = np.stack([mask[start + 1 : start + context + 1] for start in starts])
        targets = np.where(counted, targets, UNCOUNTED)
    return Batch(torch.from_numpy(rows[:, :-1]), torch.from_numpy(targets))
