"""What a training job is: its settings, its tokens and its places."""

from __future__ import annotations

import os
from argparse import Namespace
from dataclasses import dataclass
from typing import Any

from trainer.arguments import overridden
from trainer.config import TrainerConfig
from trainer.files import Files, join
from trainer.plan import read_plan
from trainer.shards import read_manifest


@dataclass(frozen=True)
class Champion:
    """The promoted model that this one has to beat."""

    version: str
    """Its name."""
    uri: str
    """Its Hugging Face folder."""
    heldout: str | None = None
    """Folder of the tokens on which it was evaluated."""


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
    events: str | None
    """Folder for TensorBoard's event files."""
    control: str | None
    """Folder in which somebody may ask the job to stop."""
    champion: Champion | None = None
    """What the trained model has to beat."""


def read_job(files: Files, values: Namespace) -> Job:
    """Read the plan and the tokens' manifest.

    :raises UserError: when one of them is missing or wrong.
    """
    config = read_plan(files, values.config, TrainerConfig, "trainer") if values.config else TrainerConfig()
    return Job(
        config=overridden(config, values),
        tokens=values.tokens.rstrip("/"),
        manifest=read_manifest(files, values.tokens),
        folder=values.job_dir.rstrip("/"),
        model_folder=(values.model_dir or join(values.job_dir, "model")).rstrip("/"),
        events=os.environ.get("AIP_TENSORBOARD_LOG_DIR") or None,
        control=os.environ.get("TRAINOPS_CONTROL_URI") or None,
        champion=_champion(files, values.config) if values.config else None,
    )


def _champion(files: Files, plan: str) -> Champion | None:
    found = files.read_json(plan).get("champion")
    return Champion(found["version"], found["uri"], found.get("heldout")) if found else None
