"""What a training job is: its settings, its tokens and its places."""

from __future__ import annotations

import os
from argparse import Namespace
from dataclasses import dataclass
from typing import Any

from trainer.arguments import overridden
from trainer.config import TrainerConfig, parse
from trainer.errors import UserError
from trainer.files import Files, join


@dataclass(frozen=True)
class Job:
    """One training job, as asked for on the command line."""

    config: TrainerConfig
    tokens: str
    """Folder of the tokens."""
    manifest: dict[str, Any]
    """Manifest of the tokens."""
    folder: str
    """Folder of all that the job leaves."""
    model_folder: str
    """Folder of the trained model."""
    control: str | None
    """Folder in which somebody may ask the job to stop."""


def read_job(files: Files, values: Namespace) -> Job:
    """Read the plan and the tokens' manifest.

    :raises UserError: when one of them is missing or wrong.
    """
    config = TrainerConfig()
    if values.config:
        plan = files.read_json(values.config)
        if plan is None:
            raise UserError(f"--config: {values.config}: no such object")
        config = parse(TrainerConfig, plan.get("trainer", {}), source=values.config, key="trainer")
    manifest = files.read_json(join(values.tokens, "manifest.json"))
    if manifest is None:
        raise UserError(
            f"--tokens: {join(values.tokens, 'manifest.json')}: no such object; run python -m trainer.tokenize first"
        )
    return Job(
        config=overridden(config, values),
        tokens=values.tokens.rstrip("/"),
        manifest=manifest,
        folder=values.job_dir.rstrip("/"),
        model_folder=(values.model_dir or join(values.job_dir, "model")).rstrip("/"),
        control=os.environ.get("TRAINOPS_CONTROL_URI") or None,
    )
