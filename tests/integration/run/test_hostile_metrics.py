"""Metrics are written by whatever the user trains with: what they hold is told as figures, or not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainops.gcp.storage import Storage
from trainops.settings import Settings
from trainops.steps.run_logs import read_progress

GOOD = {"step": 3, "steps": 10, "loss": 2.5, "tokens_per_second": 1234.5, "remaining_seconds": 61}
TOLD = "step 3/10, loss 2.500, 1,234 tokens/s, about 1:01 left"


def told(storage: Storage, settings: Settings, *lines: str) -> str | None:
    folder = f"{settings.work}/runs/exp/r/g1"
    storage.write_bytes(f"{folder}/metrics.jsonl", "\n".join(lines).encode(), generation=None)
    progress = read_progress(storage, folder)
    return None if progress is None else progress.line


@pytest.mark.parametrize(
    "changed",
    [
        {"step": "3\nINFO promoted"}, {"step": True}, {"step": 10**400}, {"steps": [1]}, {"loss": "low"},
        {"loss": None}, {"loss": {"x": 1}}, {"loss": 1e300},
    ],
)  # fmt: skip
def test_a_point_whose_figures_are_none_is_passed_over(
    storage: Storage, settings: Settings, changed: dict[str, Any]
) -> None:
    assert told(storage, settings, json.dumps(GOOD), json.dumps({**GOOD, **changed})) == TOLD


def test_what_is_no_point_is_passed_over(storage: Storage, settings: Settings) -> None:
    assert told(storage, settings, json.dumps(GOOD), '"text"', "[1]", "{", '{"event": "evaluated"}') == TOLD
    assert told(storage, settings, '"text"') is None


def test_a_loss_that_is_no_number_any_more_is_told(storage: Storage, settings: Settings) -> None:
    assert str(told(storage, settings, json.dumps({**GOOD, "loss": float("nan")}))).startswith("step 3/10, loss nan")


def test_a_rate_and_a_time_that_are_no_numbers_are_left_out(storage: Storage, settings: Settings) -> None:
    point = {**GOOD, "tokens_per_second": "fast", "remaining_seconds": float("nan")}
    assert told(storage, settings, json.dumps(point)) == "step 3/10, loss 2.500"
