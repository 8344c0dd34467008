"""Experiment, conf and moment become one plan; what is impossible is refused before anything is asked for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainops.config.conf import RunConf
from trainops.config.plan import RunMoment, RunPlan
from trainops.config.resolve import data_date, resolve
from trainops.errors import ConfigError
from trainops.naming import fingerprint
from trainops.settings import load_settings, project_root
from trainops.validation import validated

Change = Callable[..., Path]
FILE = "experiments/stdlib_tiny.yaml"
NIGHT = datetime(2026, 11, 30, 1, 30, tzinfo=UTC)
ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "America/Sao_Paulo", "UTC"]


def moment(at: datetime = NIGHT, logical: datetime | None = NIGHT) -> RunMoment:
    return RunMoment(dag_id="train_stdlib_tiny", run_id="scheduled__1", logical_date=logical, run_after=at)


def planned(conf: dict[str, Any] | None = None) -> RunPlan:
    return resolve("stdlib_tiny", conf, moment(), load_settings("local"))


def refused(conf: dict[str, Any]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        planned(conf)
    return caught.value


@pytest.mark.usefixtures("configs")
def test_the_trainer_is_told_exactly_what_the_contract_says() -> None:
    told = planned().to_json()
    assert told["tokenizer"] == {"kind": "bpe", "vocab_size": 2048, "heldout_fraction": 0.05, "seed": 0}
    assert set(told["trainer"]) == {
        "model", "steps", "batch_size", "learning_rate", "warmup_steps", "weight_decay", "grad_clip", "seed",
        "eval_every", "eval_batches", "checkpoint_every", "log_every", "sample_prompt",
    }  # fmt: skip
    assert set(told["trainer"]["model"]) == {"family", "hidden_size", "layers", "heads", "context"}


def test_a_model_to_go_on_from_and_the_kind_of_documents_reach_the_trainer(change: Change) -> None:
    folder = "gs://my-bucket/models/first"
    tokenizer = {"documents": "pairs", "init_from": folder}
    before = planned()
    changes: dict[str, Any] = {"tokenizer": tokenizer, "model": {"context": 64}, "training.init_from": folder}
    change(FILE, changes)
    told = planned().to_json()

    assert told["tokenizer"] == {"kind": "bpe", "vocab_size": 2048, "heldout_fraction": 0.05, "seed": 0, **tokenizer}
    assert told["trainer"]["init_from"] == folder
    # The shape is the trainer's own default, which it takes for "not given".
    shape = {"family": "llama", "hidden_size": 128, "layers": 4, "heads": 4, "context": 64}
    assert told["trainer"]["model"] == shape
    assert planned().tokenizer_sha16 != before.tokenizer_sha16
    assert RunPlan.from_json(told) == planned()


@pytest.mark.usefixtures("configs")
def test_keys_that_are_not_used_leave_the_name_of_the_tokens() -> None:
    assert planned().tokenizer_sha16 == fingerprint({
        "kind": "bpe",
        "vocab_size": 2048,
        "heldout_fraction": 0.05,
        "seed": 0,
    })


@pytest.mark.usefixtures("configs")
def test_the_conf_changes_what_it_names_and_nothing_else() -> None:
    before, after = planned(), planned({"steps": 7, "learning_rate": 0.01, "priority": 90, "promote": "never"})
    assert (after.trainer.steps, after.trainer.learning_rate, after.priority) == (7, 0.01, 90)
    assert after.promotion.promote == "never"
    assert after.conf == {"steps": 7, "learning_rate": 0.01, "priority": 90, "promote": "never"}
    kept = {"tokenizer", "dataset", "training_input", "tokenize_input", "run_key", "data_date", "owner"}
    assert before.model_dump(include=kept) == after.model_dump(include=kept)
    assert after.trainer.batch_size == before.trainer.batch_size


@pytest.mark.usefixtures("configs")
def test_the_conf_changes_the_machines_of_every_replica() -> None:
    conf = {
        "machine_type": "g2-standard-24", "accelerator_type": "NVIDIA_L4", "accelerator_count": 2, "worker_count": 3,
    }  # fmt: skip
    spec = planned(conf).training_input
    assert (spec["masterType"], spec["workerType"], int(spec["workerCount"])) == ("g2-standard-24", "g2-standard-24", 3)
    for role in ("masterConfig", "workerConfig"):
        assert spec[role]["acceleratorConfig"]["type"] == "NVIDIA_L4"
        assert int(spec[role]["acceleratorConfig"]["count"]) == 2


@pytest.mark.usefixtures("configs")
def test_a_run_may_do_without_workers_and_gpus() -> None:
    spec = planned({"worker_count": 0, "accelerator_count": 0}).training_input
    assert not [key for key in spec if key.startswith("worker")]
    assert "acceleratorConfig" not in spec.get("masterConfig", {})


def test_workers_are_like_the_master_when_the_experiment_has_none(change: Change) -> None:
    change(FILE, {f"training_input.{key}": None for key in ("workerType", "workerCount", "workerConfig")})
    spec = planned({"worker_count": 2}).training_input
    assert (spec["workerType"], spec["workerConfig"]) == (spec["masterType"], spec["masterConfig"])


@pytest.mark.usefixtures("configs")
@pytest.mark.parametrize(
    ("conf", "key", "value", "nearest"),
    [
        ({"stesp": 1}, "stesp", "stesp", "steps"),
        ({"steps": "ten"}, "steps", "ten", None),
        ({"dataset": "stdlb"}, "dataset", "stdlb", "stdlib"),
        ({"accelerator_type": "NVIDIA_TESLA_T5"}, "accelerator_type", "NVIDIA_TESLA_T5", "NVIDIA_TESLA_T4"),
        ({"machine_type": "n1-standard-7"}, "machine_type", "n1-standard-7", "n1-standard-4"),
        ({"data_date": "2026-12-24"}, "data_date", "2026-12-24", None),
    ],
)
def test_a_wrong_conf_is_refused(conf: dict[str, Any], key: str, value: object, nearest: str | None) -> None:
    error = refused(conf)
    assert (error.source, error.key, error.value) == ("conf", key, value)
    assert nearest is None or nearest in str(error)


@pytest.mark.usefixtures("configs")
@pytest.mark.parametrize(
    "conf",
    [
        {"accelerator_count": 3},
        {"accelerator_type": "NVIDIA_H100_80GB"},
        {"machine_type": "g2-standard-8"},
        {"machine_type": "n2-standard-8"},
    ],
)
def test_gpus_that_do_not_fit_the_machine_are_refused(conf: dict[str, Any]) -> None:
    assert refused(conf).source == "conf"


def test_machines_of_the_experiment_that_do_not_fit_are_refused_with_file_and_key(change: Change) -> None:
    path = change(FILE, {"training_input.masterConfig.acceleratorConfig.type": "NVIDIA_TESLA_T5"})
    error = refused({})
    assert error.source == str(path)
    assert error.key == "training_input.masterConfig.acceleratorConfig.type"
    assert error.nearest == "NVIDIA_TESLA_T4"


def test_a_dataset_that_is_missing_is_told_with_the_experiment(change: Change) -> None:
    path = change(FILE, {"dataset": "stdlb"})
    error = refused({})
    assert (error.source, error.key, error.nearest) == (str(path), "dataset", "stdlib")


@pytest.mark.usefixtures("configs")
def test_a_gang_larger_than_its_pool_is_refused() -> None:
    error = refused({"worker_count": 9})
    assert (error.key, error.value) == ("pools.0.quota", 4)
    assert "takes 10 GPUs" in str(error)


@pytest.mark.usefixtures("configs")
def test_a_region_without_a_pool_is_refused() -> None:
    assert refused({"region": "europe-west4"}).key == "pools"


def test_machines_of_a_fixed_scale_tier_cannot_be_changed(change: Change) -> None:
    change(FILE, {"training_input": {"scaleTier": "BASIC"}})
    error = refused({"machine_type": "n1-standard-8"})
    assert (error.source, error.key) == ("conf", "machine_type")
    assert "scaleTier: CUSTOM" in error.next_step


def test_a_count_of_gpus_without_a_type_is_refused(change: Change) -> None:
    change(FILE, {"training_input": {"scaleTier": "CUSTOM", "masterType": "n1-standard-8"}})
    assert refused({"accelerator_count": 1}).key == "accelerator_count"
    spec = planned({"accelerator_type": "NVIDIA_TESLA_T4"}).training_input
    assert int(spec["masterConfig"]["acceleratorConfig"]["count"]) == 1


@pytest.mark.case("C057")
@pytest.mark.case("C058")
@pytest.mark.case("C059")
@pytest.mark.usefixtures("configs")
def test_a_run_from_the_command_line_without_logical_date_reads_the_day_before_run_after() -> None:
    # 23:30 in UTC is the next day in Berlin already.
    plan = resolve("stdlib_tiny", {}, moment(datetime(2026, 11, 29, 23, 30, tzinfo=UTC), None), load_settings("local"))
    assert plan.data_date == date(2026, 11, 29)
    assert plan.run_key.startswith("stdlib_tiny-20261129t2330-")
    assert plan.timezone == "Europe/Berlin"


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("2026-03-29T00:30+00:00", "2026-03-28"),  # 01:30, before the clocks go forward
        ("2026-03-29T01:30+00:00", "2026-03-28"),  # 03:30, after it; 02:30 does not exist
        ("2026-03-28T23:30+00:00", "2026-03-28"),  # 00:30 of the 29th
        ("2026-03-29T22:30+00:00", "2026-03-29"),  # 00:30 of the 30th, in summer time
        ("2026-10-25T00:30+00:00", "2026-10-24"),  # 02:30 for the first time
        ("2026-10-25T01:30+00:00", "2026-10-24"),  # 02:30 for the second time
        ("2026-10-25T23:30+00:00", "2026-10-25"),  # 00:30 of the 26th, in winter time
    ],
)
def test_the_data_date_is_right_over_daylight_saving_changes(at: str, expected: str) -> None:
    logical = datetime.fromisoformat(at)
    assert data_date(RunConf(), moment(NIGHT, logical), "Europe/Berlin") == date.fromisoformat(expected)


@pytest.mark.case("C057")
@pytest.mark.case("C058")
@given(
    st.datetimes(datetime(1990, 1, 1), datetime(2037, 1, 1), timezones=st.sampled_from(ZONES).map(ZoneInfo)),
    st.sampled_from(ZONES),
)
def test_the_data_date_is_the_local_day_before_whatever_zone_the_moment_is_told_in(at: datetime, zone: str) -> None:
    found = data_date(RunConf(), moment(NIGHT, at), zone)
    assert found + timedelta(days=1) == at.astimezone(UTC).astimezone(ZoneInfo(zone)).date()
    assert data_date(RunConf(), moment(at, None), zone) == found


@given(st.dates(date(1990, 1, 1), date(2037, 1, 1)), st.sampled_from(ZONES))
def test_nightly_runs_read_every_day_once(first: date, zone: str) -> None:
    nights = [datetime(first.year, first.month, first.day, 2, 30) + timedelta(days=n) for n in range(4)]
    found = [data_date(RunConf(), moment(NIGHT, night.replace(tzinfo=ZoneInfo(zone))), zone) for night in nights]
    # Apia left out the 30th of December 2011: such a night is told as the one that followed.
    real = [night.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC).astimezone(ZoneInfo(zone)).date() for night in nights]
    assert found == [day - timedelta(days=1) for day in real]


def test_the_data_date_of_the_conf_wins() -> None:
    conf = validated(RunConf, {"data_date": "2026-01-01"}, source="conf")
    assert data_date(conf, moment(), "Europe/Berlin") == date(2026, 1, 1)


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="timezone"):
        moment(datetime(2026, 1, 1))


@pytest.mark.usefixtures("configs")
def test_the_same_input_makes_the_same_plan() -> None:
    assert planned({"steps": 5}) == planned({"steps": 5})


@pytest.mark.usefixtures("configs")
def test_placeholders_of_the_environment_stop_the_run() -> None:
    with pytest.raises(ConfigError, match="placeholders"):
        load_settings("gcp")


def test_resolving_needs_neither_airflow_nor_google() -> None:
    code = (
        "import sys, trainops.config.resolve\n"
        "heavy = {'airflow', 'google.auth', 'google.cloud.storage', 'requests'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=project_root() / "plugins"
    )
    assert found.stdout.strip() == "[]"
