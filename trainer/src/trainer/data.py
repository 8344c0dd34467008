"""Windows of tokens, and the order in which training sees them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch

from trainer.errors import UserError
from trainer.shards import Tokens


class HeldOutWindows:
    """Consecutive windows of `context` + 1 tokens that step by `context`; the incomplete last one is dropped."""

    def __init__(self, tokens: Tokens, context: int) -> None:
        self._tokens = tokens
        self._context = context
        self.count = _whole_windows(tokens, context, "held-out")

    def read(self, numbers: Sequence[int]) -> torch.Tensor:
        """Read windows by their numbers, one a row."""
        return _rows(self._tokens, [number * self._context for number in numbers], self._context)


class TrainingWindows:
    """The endless sequence of training windows.

    It depends on the seed alone, so that any number of replicas, and a resumed run, see the same windows in the same
    order. Every epoch visits every window once, in an order and at an offset of its own.
    """

    def __init__(self, tokens: Tokens, context: int, seed: int) -> None:
        self._tokens = tokens
        self._context = context
        self._epoch_size = max(1, _whole_windows(tokens, context, "training") - 1)
        self._starts = lru_cache(maxsize=2)(self._epoch_starts)
        self._seed = seed

    def read(self, first: int, end: int) -> torch.Tensor:
        """Read the windows of positions `first` to `end` - 1 of the sequence, one a row."""
        places = [divmod(position, self._epoch_size) for position in range(first, end)]
        return _rows(self._tokens, [int(self._starts(epoch)[place]) for epoch, place in places], self._context)

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


def _rows(tokens: Tokens, starts: Sequence[int], context: int) -> torch.Tensor:
    rows = np.stack([tokens[start : start + context + 1] for start in starts])
    return torch.from_numpy(rows.astype(np.int64))
