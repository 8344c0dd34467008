"""Replicas that cannot train as the experiment says are refused before they are paid for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from trainops.config.plan import RunMoment, RunPlan
from trainops.config.resolve import resolve
from trainops.errors import ConfigError
from trainops.settings import load_settings

Change = Callable[..., Path]
FILE = "experiments/stdlib_tiny.yaml"
MOMENT = RunMoment(
    dag_id="train_stdlib_tiny", run_id="manual__1", logical_date=None, run_after=datetime(2026, 11, 30, tzinfo=UTC)
)
SERVERS = {
    "training_input.parameterServerType": "n1-standard-4",
    "training_input.parameterServerCount": 2,
    "training_input.parameterServerConfig": {},
}
ALONE: dict[str, Any] = {f"training_input.{key}": None for key in ("workerType", "workerCount", "workerConfig")}


def planned(conf: dict[str, Any] | None = None) -> RunPlan:
    return resolve("stdlib_tiny", conf, MOMENT, load_settings("local"))


@pytest.mark.parametrize(
    ("strategy", "machines"),
    [
        ("auto", {}),
        ("ddp", {}),
        ("fsdp", {}),
        ("single", ALONE),
        ("auto", SERVERS),
        ("parameter_server", SERVERS),
        ("parameter_server", {**ALONE, **SERVERS}),
    ],
)
def test_the_trainer_is_told_a_strategy_that_its_replicas_can_follow(
    change: Change, strategy: str, machines: dict[str, Any]
) -> None:
    change(FILE, {"training.strategy": strategy, **machines})
    assert planned().to_json()["trainer"]["strategy"] == strategy


@pytest.mark.parametrize(
    ("strategy", "machines", "told"),
    [
        ("single", {}, "2 workers (the master is one) and 0 parameter servers"),
        ("parameter_server", {}, "2 workers (the master is one) and 0 parameter servers"),
        ("ddp", ALONE, "1 worker (the master is one) and 0 parameter servers"),
        ("fsdp", ALONE, "1 worker (the master is one) and 0 parameter servers"),
        ("ddp", SERVERS, "2 workers (the master is one) and 2 parameter servers"),
        ("single", {**ALONE, **SERVERS}, "1 worker (the master is one) and 2 parameter servers"),
    ],
)
def test_a_strategy_that_they_cannot_follow_is_refused_with_their_numbers(
    change: Change, strategy: str, machines: dict[str, Any], told: str
) -> None:
    change(FILE, {"training.strategy": strategy, **machines})
    with pytest.raises(ConfigError) as caught:
        planned()
    assert caught.value.key == "training.strategy"
    assert told in str(caught.value)


def test_every_worker_needs_a_sequence_of_the_batch(change: Change) -> None:
    change(FILE, {"training.batch_size": 1})
    with pytest.raises(ConfigError, match="each of the 2 workers") as caught:
        planned()
    assert (caught.value.key, caught.value.next_step) == ("training.batch_size", "take 2 or more")
    assert planned({"worker_count": 0}).trainer.batch_size == 1
    with pytest.raises(ConfigError, match="each of the 4 workers") as by_conf:
        planned({"batch_size": 3, "worker_count": 3})
    assert (by_conf.value.source, by_conf.value.key) == ("conf", "batch_size")
