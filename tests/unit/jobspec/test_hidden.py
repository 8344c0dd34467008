"""Secret variables of a job are sent, and shown nowhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainops.jobspec.hidden import HIDDEN, hidden_job, hidden_variables, is_secret, secret_values
from trainops.jobspec.training_input import parse_training_input
from trainops.jobspec.translate import Images, Translation, translate


@pytest.mark.parametrize(
    "name",
    ["HF_TOKEN", "MYTOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "db_passwd", "GCP_CREDENTIALS"],
)
def test_a_name_that_says_so_is_a_secret(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "NCCL_DEBUG", "PYTHONPATH", "HF_HOME", "STEPS"])
def test_other_names_are_none(name: str) -> None:
    assert not is_secret(name)


def translated() -> Translation:
    body: dict[str, Any] = {
        "scaleTier": "CUSTOM", "masterType": "n1-standard-8", "region": "us-central1",
        "masterConfig": {"imageUri": "example/image"},
        "vertex": {"env": {"HF_TOKEN": "hf_abcdefgh", "NCCL_DEBUG": "INFO"}},
    }  # fmt: skip
    return translate(
        parse_training_input(body, "job"), display_name="d", labels={}, substitute="warn", images=Images(None, None)
    )


def test_the_value_is_sent_and_stands_in_no_note() -> None:
    done = translated()
    container = done.job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]
    assert {"name": "HF_TOKEN", "value": "hf_abcdefgh"} in container["env"]
    assert "hf_abcdefgh" not in json.dumps([note.value for note in done.notes])
    assert secret_values(done.job) == ["hf_abcdefgh"]


def test_a_job_is_shown_as_it_is_sent_but_for_its_secrets() -> None:
    job = translated().job
    shown = hidden_job(job)
    assert "hf_abcdefgh" not in json.dumps(shown)
    assert json.loads(json.dumps(job).replace("hf_abcdefgh", HIDDEN)) == shown
    assert secret_values(job) == ["hf_abcdefgh"], "the job itself is left as it was"


def test_variables_are_hidden_by_their_names() -> None:
    assert hidden_variables({"A_KEY": "x", "B": "y"}) == {"A_KEY": HIDDEN, "B": "y"}
