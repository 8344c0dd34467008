from __future__ import annotations

import numpy as np
import pytest
import torch

from trainer.data import UNCOUNTED, Batch, HeldOutWindows, TrainingWindows
from trainer.errors import UserError

TOKENS = np.arange(1000, dtype=np.uint16)


def rows(batch: Batch) -> torch.Tensor:
    """The windows of a batch: its inputs, and the last target of each."""
    return torch.cat([batch.inputs, batch.targets[:, -1:]], dim=1)


def test_held_out_windows_follow_each_other_and_share_one_token() -> None:
    windows = HeldOutWindows(TOKENS[:26], context=10)

    assert windows.count == 2
    assert rows(windows.read([0, 1])).tolist() == [list(range(11)), list(range(10, 21))]


def test_the_order_depends_on_the_seed_alone() -> None:
    whole = TrainingWindows(TOKENS, context=10, seed=1).read(0, 500).inputs
    other = TrainingWindows(TOKENS, context=10, seed=1)
    pieces = torch.cat([other.read(first, first + 20).inputs for first in range(0, 500, 20)])

    assert torch.equal(whole, pieces)
    assert not torch.equal(whole, TrainingWindows(TOKENS, context=10, seed=2).read(0, 500).inputs)


def test_an_epoch_visits_every_window_once() -> None:
    windows = TrainingWindows(TOKENS, context=10, seed=0)
    epoch = (1000 - 1) // 10 - 1

    first, second = windows.read(0, epoch).inputs[:, 0], windows.read(epoch, 2 * epoch).inputs[:, 0]

    assert len(set(first.tolist())) == epoch
    assert set((first - first.min()).tolist()) == set((second - second.min()).tolist())
    assert first.tolist() != second.tolist()


@pytest.mark.parametrize("size", [12, 21, 22, 37])
def test_every_window_is_whole_however_few_tokens_there_are(size: int) -> None:
    batch = TrainingWindows(TOKENS[:size], context=10, seed=0).read(0, 50)

    assert rows(batch).shape == (50, 11)


def test_too_few_tokens_for_one_window_are_refused() -> None:
    with pytest.raises(UserError, match=r"trainer\.model\.context: the held-out tokens are 10, too few"):
        HeldOutWindows(TOKENS[:10], context=10)


def test_targets_outside_the_mask_do_not_count() -> None:
    mask = np.array([0, 0, 1, 1] * 6, dtype=np.uint8)

    batch = HeldOutWindows(TOKENS[:24], context=10, mask=mask).read([1])

    assert batch.inputs.tolist() == [list(range(10, 20))]
    wanted = [11, None, None, 14, 15, None, None, 18, 19, None]
    assert batch.targets.tolist() == [[UNCOUNTED if token is None else token for token in wanted]]
    assert batch.counted == 5


def test_the_count_of_a_batch_is_known_without_reading_it() -> None:
    mask = (TOKENS % 3 == 0).astype(np.uint8)
    windows = TrainingWindows(TOKENS, context=10, seed=0, mask=mask)

    assert windows.counted(90, 130) == windows.read(90, 130).counted > 0
    assert TrainingWindows(TOKENS, context=10, seed=0).counted(90, 130) == 400
