from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainer.arguments import overridden, task_parser, tokenize_parser
from trainer.config import ModelConfig, TokenizerConfig, TrainerConfig
from trainer.descriptions import field_docs
from trainer.errors import UserError

REQUIRED = ["--tokens", "t", "--job-dir", "j"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--model_dir=gs://bucket/models/", "--batch_size=32", "--learning_rate=0.01", "--train_steps=7"],
        ["--model-dir", "gs://bucket/models/", "--batch-size", "32", "--learning-rate", "0.01", "--train-steps", "7"],
    ],
    ids=["underscores", "dashes"],
)
def test_arguments_of_ai_platform_jobs_override_the_config(arguments: list[str]) -> None:
    values = task_parser().parse_strictly([*REQUIRED, *arguments])

    assert overridden(TrainerConfig(seed=3), values) == TrainerConfig(
        seed=3, batch_size=32, learning_rate=0.01, steps=7
    )
    assert values.model_dir == "gs://bucket/models/"


def test_an_unknown_argument_ends_with_exit_code_2_and_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        task_parser().parse_strictly([*REQUIRED, "--batchsize=3"])

    assert caught.value.code == 2
    assert "unknown argument '--batchsize=3'; did you mean '--batch_size'?" in capsys.readouterr().err


def test_an_argument_out_of_range_is_refused() -> None:
    values = task_parser().parse_strictly([*REQUIRED, "--batch_size=0"])

    with pytest.raises(UserError, match=r"command line: trainer\.batch_size: got 0; allowed: at least 1"):
        overridden(TrainerConfig(), values)


def test_of_an_argument_given_twice_the_last_counts() -> None:
    values = task_parser().parse_strictly([*REQUIRED, "--batch_size=2", "--batch-size", "3"])

    assert overridden(TrainerConfig(), values).batch_size == 3


def test_a_misspelt_argument_is_told_of_before_the_one_that_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        task_parser().parse_strictly(["--token", "t", "--job-dir", "j"])

    assert caught.value.code == 2
    assert "unknown argument '--token'; did you mean '--tokens'?" in capsys.readouterr().err


def test_an_argument_that_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        task_parser().parse_strictly(["--tokens=t"])

    assert caught.value.code == 2
    assert "error: --job-dir must be given; see python -m trainer.task --help" in capsys.readouterr().err


def test_the_command_line_counts_more_than_the_config(train: Callable[..., int], tmp_path: Path) -> None:
    assert train(tmp_path, "--train_steps=3", "--batch-size", "2", steps=8, batch_size=4, eval_every=0) == 0

    result = json.loads((tmp_path / "result.json").read_text())
    assert (result["steps"], result["tokens"]) == (3, 3 * 2 * 32)


@pytest.mark.parametrize("program", ["task", "tokenize"])
def test_help_names_every_argument_and_every_key_with_its_meaning(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parsers = {"task": task_parser, "tokenize": tokenize_parser}
    with pytest.raises(SystemExit) as caught:
        parsers[program]().parse_strictly(["--help"])

    shown = " ".join(capsys.readouterr().out.split())
    assert caught.value.code == 0
    arguments = {
        "task": ("config", "tokens", "job-dir", "job_dir", "model_dir", "batch_size", "learning_rate", "train_steps"),
        "tokenize": ("dataset", "output", "config"),
    }
    assert all(f"--{name}" in shown for name in arguments[program])
    variables = {"task": ("CLUSTER_SPEC", "TF_CONFIG", "RANK", "TRAINOPS_CONTROL_URI", "AIP_TENSORBOARD_LOG_DIR")}
    assert all(name in shown for name in variables.get(program, ()))
    told: dict[str, dict[str, type[Any]]] = {
        "task": {"trainer": TrainerConfig, "trainer.model": ModelConfig},
        "tokenize": {"tokenizer": TokenizerConfig},
    }
    for key, kind in told[program].items():
        docs = field_docs(kind)
        names = [item.name for item in dataclasses.fields(kind) if item.name != "model"]
        assert all(f"{key}.{name} (" in shown and docs[name] in shown for name in names)


def test_help_tells_types_defaults_and_limits(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        task_parser().parse_strictly(["--help"])

    shown = capsys.readouterr().out
    assert "trainer.learning_rate (float; at most 10.0; more than 0.0; default 0.003)" in shown
    assert "trainer.init_from (str; default none)" in shown
    assert "trainer.model.settings (mapping; default {})" in shown
