"""A job's secrets reach neither the log nor the XCom of the task that only shows it."""

from __future__ import annotations

import json
from typing import Any

from trainops.operators.dry_run import dry_run
from trainops.settings import load_settings
from trainops.steps.start import JobRequest


def test_a_dry_run_shows_the_job_without_its_secrets() -> None:
    body: dict[str, Any] = {
        "scaleTier": "CUSTOM", "masterType": "n1-standard-8", "region": "us-central1",
        "masterConfig": {"imageUri": "example/image"},
        "vertex": {"env": {"HF_TOKEN": "hf_abcdefgh", "NCCL_DEBUG": "INFO"}},
    }  # fmt: skip
    request = JobRequest(
        job_key="r-submit", run_key="r", experiment="exp", task="submit", display_name="r", training_input=body
    )
    said: list[str] = []
    returned = dry_run(load_settings("local"), request, lambda form, line: said.append(form % line))
    told = "\n".join([*said, json.dumps(returned)])
    assert "hf_abcdefgh" not in told
    assert '"name": "HF_TOKEN", "value": "***"' in told
    assert '"name": "NCCL_DEBUG", "value": "INFO"' in told
