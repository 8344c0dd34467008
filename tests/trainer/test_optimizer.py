from __future__ import annotations

import pytest

from trainer.config import TrainerConfig
from trainer.optimizer import FINAL_SHARE, learning_rate

CONFIG = TrainerConfig(steps=100, warmup_steps=10, learning_rate=0.5)


def test_the_learning_rate_rises_to_its_highest_and_falls_to_a_tenth() -> None:
    rates = [learning_rate(CONFIG, step) for step in range(1, 101)]

    assert rates[0] == pytest.approx(0.05)
    assert max(rates) == rates[9] == CONFIG.learning_rate
    assert rates[9:] == sorted(rates[9:], reverse=True)
    assert rates[-1] == pytest.approx(0.5 * FINAL_SHARE)


def test_a_warmup_longer_than_the_run_only_rises() -> None:
    config = TrainerConfig(steps=5, warmup_steps=10, learning_rate=0.5)

    assert [learning_rate(config, step) for step in (1, 5)] == pytest.approx([0.05, 0.25])


def test_without_warmup_the_first_step_is_already_high() -> None:
    assert learning_rate(TrainerConfig(steps=100, warmup_steps=0, learning_rate=0.5), 1) > 0.49
