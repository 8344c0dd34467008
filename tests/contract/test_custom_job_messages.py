"""Every request on file is a CustomJob in the eyes of Google's own message types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import AcceleratorType, CustomJob
from google.protobuf import json_format

from trainops.jobspec.tables.machines import CLOUD_TPU_TYPES, GPU_TYPES

GOLDEN = sorted((Path(__file__).parents[1] / "unit" / "jobspec" / "golden").glob("*.json"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_request_survives_the_message_and_back(path: Path) -> None:
    request: dict[str, Any] = json.loads(path.read_text())
    message = CustomJob.pb(CustomJob())
    json_format.ParseDict(request, message, ignore_unknown_fields=False)
    assert json_format.MessageToDict(message) == request


def test_there_are_requests_on_file() -> None:
    assert len(GOLDEN) >= 12


@pytest.mark.parametrize("kind", [*GPU_TYPES, *CLOUD_TPU_TYPES])
def test_every_accelerator_of_the_tables_is_in_the_enum(kind: str) -> None:
    assert kind in AcceleratorType.__members__
