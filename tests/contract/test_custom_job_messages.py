"""Every request on file is a CustomJob in the eyes of Google's own message types."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.cloud.aiplatform_v1.types import AcceleratorType, CustomJob
from google.protobuf import json_format
from tests.contract.requests_on_file import CUSTOM_JOBS, request

from trainops.jobspec.tables.machines import CLOUD_TPU_TYPES, GPU_TYPES


@pytest.mark.parametrize("path", CUSTOM_JOBS, ids=lambda path: path.stem)
def test_a_request_survives_the_message_and_back(path: Path) -> None:
    message = CustomJob.pb(CustomJob())
    json_format.ParseDict(request(path), message, ignore_unknown_fields=False)
    assert json_format.MessageToDict(message) == request(path)


def test_there_are_requests_on_file() -> None:
    assert len(CUSTOM_JOBS) >= 25


@pytest.mark.parametrize("kind", [*GPU_TYPES, *CLOUD_TPU_TYPES])
def test_every_accelerator_of_the_tables_is_in_the_enum(kind: str) -> None:
    assert kind in AcceleratorType.__members__
