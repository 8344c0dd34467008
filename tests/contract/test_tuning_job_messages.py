"""Every tuning request on file is a HyperparameterTuningJob in the eyes of Google's own message types."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from google.cloud.aiplatform_v1.types import HyperparameterTuningJob, StudySpec
from google.protobuf import json_format
from tests.contract.requests_on_file import TUNING_JOBS, request

from trainops.jobspec.hyperparameters import HyperparameterSpec, ParameterSpec


def _without_zeros(value: Any) -> Any:
    """Leave out numbers that are 0, as the JSON form of a message does."""
    if isinstance(value, dict):
        return {key: _without_zeros(inner) for key, inner in value.items() if inner not in (0, "0")}
    return [_without_zeros(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("path", TUNING_JOBS, ids=lambda path: path.stem)
def test_a_request_survives_the_message_and_back(path: Path) -> None:
    message = HyperparameterTuningJob.pb(HyperparameterTuningJob())
    json_format.ParseDict(request(path), message, ignore_unknown_fields=False)
    assert json_format.MessageToDict(message) == _without_zeros(request(path))


@pytest.mark.parametrize("path", TUNING_JOBS, ids=lambda path: path.stem)
def test_a_request_has_all_that_the_message_requires(path: Path) -> None:
    job = request(path)
    assert {"displayName", "studySpec", "maxTrialCount", "parallelTrialCount", "trialJobSpec"} <= set(job)
    assert {"metrics", "parameters"} <= set(job["studySpec"])


def test_there_are_requests_on_file() -> None:
    assert len(TUNING_JOBS) >= 7


@pytest.mark.parametrize(
    ("model", "field", "enum"),
    [
        (HyperparameterSpec, "goal", StudySpec.MetricSpec.GoalType),
        (HyperparameterSpec, "algorithm", StudySpec.Algorithm),
        (ParameterSpec, "scale_type", StudySpec.ParameterSpec.ScaleType),
    ],
    ids=["goal", "algorithm", "scale_type"],
)
def test_every_name_that_is_sent_is_in_the_enum(model: Any, field: str, enum: Any) -> None:
    names = {name for choice in get_args(model.model_fields[field].annotation) for name in get_args(choice)}
    assert names - set(enum.__members__) <= {"NONE"}  # not sent
    assert set(enum.__members__) - names <= {"SCALE_TYPE_UNSPECIFIED"}  # AI Platform calls it NONE
