"""A plan survives its file, and says what identifies its tokenizer."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from trainops.config.plan import RunMoment, RunPlan
from trainops.config.resolve import resolve
from trainops.errors import ConfigError
from trainops.settings import load_settings


@pytest.fixture
def plan(configs: Path) -> RunPlan:
    moment = RunMoment(
        dag_id="train_stdlib_tiny",
        run_id="manual__1",
        logical_date=None,
        run_after=datetime(2026, 11, 30, 12, tzinfo=UTC),
    )
    return resolve("stdlib_tiny", {"steps": 5, "data_date": "2026-11-01"}, moment, load_settings("local"))


def test_a_plan_survives_its_file(plan: RunPlan) -> None:
    assert RunPlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_the_file_says_its_schema(plan: RunPlan) -> None:
    assert plan.to_json()["schema"] == 1


def test_a_plan_of_another_version_is_refused(plan: RunPlan) -> None:
    with pytest.raises(ConfigError) as caught:
        RunPlan.from_json({**plan.to_json(), "schema": 2}, source="gs://b/plan.json")
    assert (caught.value.source, caught.value.key) == ("gs://b/plan.json", "schema")


def test_a_plan_cannot_be_changed(plan: RunPlan) -> None:
    with pytest.raises(ValueError, match="frozen"):
        plan.__setattr__("priority", 1)


def test_only_its_settings_identify_a_tokenizer(plan: RunPlan) -> None:
    other = plan.model_copy(update={"tokenizer": plan.tokenizer.model_copy(update={"vocab_size": 4096})})
    assert len(plan.tokenizer_sha16) == 16
    assert plan.tokenizer_sha16 == plan.model_copy(update={"priority": 1}).tokenizer_sha16
    assert plan.tokenizer_sha16 != other.tokenizer_sha16
