from __future__ import annotations

import pytest

from trainer.arguments import overridden, task_parser
from trainer.config import TrainerConfig
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


def test_help_names_every_argument(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        task_parser().parse_strictly(["--help"])

    shown = capsys.readouterr().out
    assert caught.value.code == 0
    names = ("config", "tokens", "job-dir", "model_dir", "batch_size", "learning_rate", "train_steps")
    assert all(f"--{name}" in shown for name in names)
