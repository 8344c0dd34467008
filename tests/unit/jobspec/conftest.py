from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trainops.jobspec.training_input import parse_training_input
from trainops.jobspec.translate import Translation, translate

Translated = Callable[..., Translation]

WHOLE = {
    "region": "us-central1",
    "packageUris": ["gs://my-bucket/trainer.tar.gz"],
    "pythonModule": "trainer.task",
    "runtimeVersion": "2.11",
}


@pytest.fixture
def translated() -> Translated:
    """Translate a job that is whole but for the fields given; a field given as None is left out."""

    def run(fields: dict[str, Any], *, substitute: str = "warn", **options: Any) -> Translation:
        given = {key: value for key, value in (WHOLE | fields).items() if value is not None}
        spec = parse_training_input(given, "job.yaml")
        options = {"display_name": "job", "labels": {}} | options
        return translate(spec, substitute=substitute, **options)

    return run
