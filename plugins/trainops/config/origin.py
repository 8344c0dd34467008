"""Where weights or a tokenizer come from: a Hugging Face folder in a bucket, or a promoted model, MODEL@CHANNEL.

Channels move, so a run keeps the folder of the version that its channel pointed at: `trainops.steps.base_model`.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from trainops.validation import Refused

CHANNELS = ("production", "candidate")
"""Channels of every model."""

_FOLDER = re.compile(r"gs://[a-z0-9][a-z0-9._-]*/[^/].*")
"""In a bucket: jobs run on other machines, where a local path means nothing."""
_MODEL = re.compile(r"[a-z][a-z0-9-]{0,62}")


def check_origin(text: str) -> str:
    """Return `text` when it is a folder in a bucket or names a channel of a model.

    :raises Refused: it is neither.
    """
    model, at, channel = text.partition("@")
    if _FOLDER.fullmatch(text):
        return text
    if not at or not _MODEL.fullmatch(model):
        raise Refused(
            "neither a folder in a bucket nor a promoted model",
            next_step="write gs://BUCKET/FOLDER, or MODEL@CHANNEL such as stdlib-tiny@production",
        )
    if channel not in CHANNELS:
        raise Refused("no such channel", allowed=[f"{model}@{name}" for name in CHANNELS])
    return text


def promoted_model(text: str) -> tuple[str, str] | None:
    """Return model and channel that `text` names; None when it is a folder."""
    model, at, channel = text.partition("@")
    return (model, channel) if at and not text.startswith("gs://") else None


Origin = Annotated[str, AfterValidator(check_origin)]
"""gs://bucket/folder, or MODEL@CHANNEL."""
