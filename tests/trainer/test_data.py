from __future__ import annotations

import numpy as np
import pytest
import torch

from trainer.data import HeldOutWindows, TrainingWindows
from trainer.errors import UserError

TOKENS = np.arange(1000, dtype=np.uint16)


def test_held_out_windows_follow_each_other_and_share_one_token() -> None:
    windows = HeldOutWindows(TOKENS[:26], context=10)

    assert windows.count == 2
    assert windows.read([0, 1]).tolist() == [list(range(11)), list(range(10, 21))]


def test_the_order_depends_on_the_seed_alone() -> None:
    whole = TrainingWindows(TOKENS, context=10, seed=1).read(0, 500)
    other = TrainingWindows(TOKENS, context=10, seed=1)
    pieces = torch.cat([other.read(first, first + 20) for first in range(0, 500, 20)])

    assert torch.equal(whole, pieces)
    assert not torch.equal(whole, TrainingWindows(TOKENS, context=10, seed=2).read(0, 500))


def test_an_epoch_visits_every_window_once() -> None:
    windows = TrainingWindows(TOKENS, context=10, seed=0)
    epoch = (1000 - 1) // 10 - 1

    first, second = windows.read(0, epoch)[:, 0], windows.read(epoch, 2 * epoch)[:, 0]

    assert len(set(first.tolist())) == epoch
    assert set((first - first.min()).tolist()) == set((second - second.min()).tolist())
    assert first.tolist() != second.tolist()


@pytest.mark.parametrize("size", [12, 21, 22, 37])
def test_every_window_is_whole_however_few_tokens_there_are(size: int) -> None:
    rows = TrainingWindows(TOKENS[:size], context=10, seed=0).read(0, 50)

    assert rows.shape == (50, 11)


def test_too_few_tokens_for_one_window_are_refused() -> None:
    with pytest.raises(UserError, match=r"trainer\.model\.context: the held-out tokens are 10, too few"):
        HeldOutWindows(TOKENS[:10], context=10)
