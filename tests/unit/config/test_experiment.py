"""An experiment's file is read strictly; a broken one tells which key is wrong and leaves the others alone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainops.config.experiment import (
    Experiment,
    Model,
    Promotion,
    Queue,
    Schedule,
    Tokenizer,
    Training,
    experiment_names,
    load_experiment,
)
from trainops.config.model import Config
from trainops.errors import ConfigError

Change = Callable[..., Path]
FILE = "experiments/stdlib_tiny.yaml"


def test_the_first_experiment_loads(configs: Path) -> None:
    experiment = load_experiment("stdlib_tiny")
    assert experiment.schedule is not None
    assert (experiment.schedule.cron, experiment.schedule.timezone) == ("30 2 * * *", "Europe/Berlin")
    assert experiment.dataset == "stdlib"
    assert experiment.training_input["masterType"] == "n1-standard-8"


def test_every_field_of_an_experiment_is_described() -> None:
    models: list[type[Config]] = [Experiment, Schedule, Tokenizer, Model, Training, Queue, Promotion]
    fields = [(model.__name__, *item) for model in models for item in model.model_fields.items()]
    assert [(model, name) for model, name, field in fields if not field.description] == []


def test_only_what_has_no_default_must_be_written(configs: Path, change: Change) -> None:
    optional = ("schedule", "tags", "tokenizer", "model", "tokenize_input", "queue", "promotion")
    change(FILE, dict.fromkeys(optional))
    experiment = load_experiment("stdlib_tiny")
    assert experiment.schedule is None
    assert (experiment.promotion.model, experiment.promotion.channel) == ("stdlib-tiny", "production")
    assert experiment.tokenize_input == {"scaleTier": "CUSTOM", "masterType": "n1-standard-4"}


def test_machines_may_be_spelt_in_snake_case(change: Change) -> None:
    accelerator = {"type": "NVIDIA_TESLA_T4", "count": "1"}
    snake = {
        "scale_tier": "CUSTOM",
        "master_type": "n1-standard-8",
        "master_config": {"accelerator_config": accelerator},
    }
    change(FILE, {"training_input": snake})
    assert load_experiment("stdlib_tiny").training_input == {
        "scaleTier": "CUSTOM",
        "masterType": "n1-standard-8",
        "masterConfig": {"acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": 1}},
    }


@pytest.mark.parametrize(
    ("changes", "key", "value", "nearest"),
    [
        ({"trainig": {}}, "trainig", "trainig", "training"),
        ({"training.stesp": 1}, "training.stesp", "stesp", "steps"),
        ({"training.steps": "ten"}, "training.steps", "ten", None),
        ({"training.steps": 0}, "training.steps", 0, None),
        ({"training": None}, "training", None, None),
        ({"owner": ""}, "owner", "", None),
        ({"tags": "demo"}, "tags", "demo", None),
        ({"schedule.cron": "30 2 * *"}, "schedule.cron", "30 2 * *", None),
        ({"schedule.cron": "30 25 * * *"}, "schedule.cron", "30 25 * * *", None),
        ({"schedule.timezone": "Europe/Berln"}, "schedule.timezone", "Europe/Berln", "Europe/Berlin"),
        ({"schedule.start_date": "soon"}, "schedule.start_date", "soon", None),
        ({"schedule.catchup": "no"}, "schedule.catchup", "no", None),
        ({"tokenizer.kind": "bp"}, "tokenizer.kind", "bp", "bpe"),
        ({"tokenizer.vocab_size": 256}, "tokenizer.vocab_size", 256, None),
        ({"tokenizer.heldout_fraction": 0.6}, "tokenizer.heldout_fraction", 0.6, None),
        ({"tokenizer.documents": "pair"}, "tokenizer.documents", "pair", "pairs"),
        ({"tokenizer.init_from": "models/a"}, "tokenizer.init_from", "models/a", None),
        ({"tokenizer.vocab_size": 999, "tokenizer.init_from": "gs://my-bucket/a"}, "tokenizer.vocab_size", 999, None),
        ({"training.init_from": "gs://my-bucket"}, "training.init_from", "gs://my-bucket", None),
        ({"training.init_from": "gs://my-bucket/a"}, "model.family", "llama", None),
        ({"training.init_from": "Tiny@production"}, "training.init_from", "Tiny@production", None),
        ({"training.init_from": "tiny@prodction"}, "training.init_from", "tiny@prodction", "tiny@production"),
        ({"tokenizer.init_from": "tiny@candidat"}, "tokenizer.init_from", "tiny@candidat", "tiny@candidate"),
        (
            {"tokenizer.vocab_size": 999, "training.init_from": "tiny@production"},
            "tokenizer.vocab_size",
            999,
            None,
        ),
        ({"model.family": "lama"}, "model.family", "lama", "llama"),
        ({"model.hidden_size": 100}, "model.hidden_size", 100, None),
        ({"model.kv_heads": 3}, "model.kv_heads", 3, None),
        ({"training_input.masterTyp": "x"}, "training_input.masterTyp", "masterTyp", "masterType"),
        ({"training_input.workerCount": "one"}, "training_input.workerCount", "one", None),
        ({"training_input.args": ["--x"]}, "training_input.args", ["--x"], None),
        ({"training_input.jobDir": "gs://b/x"}, "training_input.jobDir", "gs://b/x", None),
        ({"tokenize_input.packageUris": ["gs://b/x"]}, "tokenize_input.packageUris", ["gs://b/x"], None),
        ({"tokenize_input": "n1-standard-4"}, "tokenize_input", "n1-standard-4", None),
        ({"queue.priority": 101}, "queue.priority", 101, None),
        ({"queue.max_running_hours": 0}, "queue.max_running_hours", 0, None),
        ({"promotion.approval": "requird"}, "promotion.approval", "requird", "required"),
        ({"promotion.model": "My Model"}, "promotion.model", "My Model", None),
        ({"promotion.channel": "prod"}, "promotion.channel", "prod", "production"),
    ],
)
def test_a_wrong_experiment_is_refused(
    change: Change, changes: dict[str, Any], key: str, value: object, nearest: str | None
) -> None:
    path = change(FILE, changes)
    with pytest.raises(ConfigError) as caught:
        load_experiment("stdlib_tiny")
    error = caught.value
    assert (error.source, error.key, error.value, error.nearest) == (str(path), key, value, nearest)


@pytest.mark.parametrize("name", ["Stdlib_Tiny", "stdlib-tiny", "1st", "a" * 41, "tiny_", "tïny"])
def test_a_name_with_a_bad_character_is_refused(configs: Path, name: str) -> None:
    shutil.copy(configs / FILE, configs / "experiments" / f"{name}.yaml")
    with pytest.raises(ConfigError, match="an experiment's name is") as caught:
        load_experiment(name)
    assert caught.value.value == name
    assert "rename the file to " in caught.value.next_step


@pytest.mark.parametrize("origin", ["stdlib-tiny@production", "gs://my-bucket/models/first"])
def test_who_goes_on_from_a_model_gets_its_tokenizer(change: Change, origin: str) -> None:
    change(FILE, {"training.init_from": origin, "model": None, "tokenizer": {"documents": "pairs"}})
    assert load_experiment("stdlib_tiny").tokenizer == Tokenizer(documents="pairs", init_from=origin)


def test_a_tokenizer_that_is_named_is_kept(change: Change) -> None:
    other = {"init_from": "gs://my-bucket/the-same-tokenizer"}
    change(FILE, {"training.init_from": "stdlib-tiny@candidate", "model": None, "tokenizer": other})
    assert load_experiment("stdlib_tiny").tokenizer.init_from == other["init_from"]


def test_broken_yaml_is_told_with_its_place(configs: Path) -> None:
    path = configs / "experiments" / "broken.yaml"
    path.write_text("description: a: b\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="line 1, column 15") as caught:
        load_experiment("broken")
    assert caught.value.source == str(path)


def test_broken_experiments_are_listed_too(configs: Path) -> None:
    (configs / "experiments" / "broken.yaml").write_text(":", encoding="utf-8")
    assert experiment_names() == ["broken", "stdlib_docstrings", "stdlib_tiny"]


def test_an_unknown_experiment_is_refused_with_the_nearest(configs: Path) -> None:
    with pytest.raises(ConfigError, match="no such experiment") as caught:
        load_experiment("stdlib_tyni")
    assert caught.value.nearest == "stdlib_tiny"
