"""A run that would cost more than it may is refused with the figures, before it starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.config.test_resolve import planned

from trainops.errors import ConfigError

Change = Callable[..., Path]
FILE = "experiments/stdlib_tiny.yaml"


def refused(conf: dict[str, Any] | None = None) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        planned(conf)
    return caught.value


def test_the_plan_says_what_the_training_probably_costs(change: Change) -> None:
    change(FILE, {"queue.estimate_hours": 2.0})
    two_hours = planned().planned_usd
    change(FILE, {"queue.estimate_hours": 4.0})
    four_hours = planned().planned_usd
    assert two_hours is not None
    assert four_hours == pytest.approx(2 * two_hours)


def test_without_an_estimate_all_hours_that_it_may_run_count(change: Change) -> None:
    change(FILE, {"queue.estimate_hours": 2.0})
    estimated = planned().planned_usd
    change(FILE, {"queue.estimate_hours": None, "queue.max_running_hours": 20.0})
    assert estimated is not None
    assert planned().planned_usd == pytest.approx(10 * estimated)


def test_over_the_cap_of_the_experiment_it_is_refused_with_the_figures(change: Change) -> None:
    path = change(FILE, {"queue.estimate_hours": 10.0, "queue.max_usd": 1.0})
    error = refused()
    assert (error.source, error.key, error.value) == (str(path), "queue.max_usd", 1.0)
    assert "an hour for 10 hours (estimate_hours)" in str(error)
    assert "USD" in str(error)


@pytest.mark.usefixtures("configs")
def test_the_conf_may_set_the_cap_and_is_blamed_for_it() -> None:
    assert str(planned({"max_usd": 500.0}).max_usd) == "500.0"
    error = refused({"max_usd": 0.001})
    assert (error.source, error.key) == ("conf", "max_usd")


def test_a_cap_on_what_has_no_price_is_refused_with_the_reason(change: Change) -> None:
    change(FILE, {"queue.max_usd": 100.0, "training_input.vertex": {"persistentResourceId": "mine"}})
    assert "the cap cannot be kept: the job runs on a persistent resource" in str(refused())


def test_the_dearest_candidate_counts(change: Change) -> None:
    places = [
        {"accelerator": "NVIDIA_TESLA_T4", "region": "us-central1", "provisioning": model, "quota": 4}
        for model in ("standard", "spot")
    ]
    change("gpu_pools.yaml", {"pools": places})
    alone = planned().planned_usd
    change(FILE, {"queue.candidates": [{"provisioning": "spot"}]})
    assert planned().planned_usd == alone
