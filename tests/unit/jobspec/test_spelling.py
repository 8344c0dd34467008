from __future__ import annotations

from typing import Any

import pytest

from trainops.errors import ConfigError
from trainops.jobspec.spelling import job_folded_in


@pytest.mark.parametrize("wrapper", ["trainingInput", "training_input"])
def test_a_wrapped_input_is_unwrapped(wrapper: str) -> None:
    assert job_folded_in({wrapper: {"scaleTier": "BASIC"}}, "") == {"scaleTier": "BASIC"}


def test_a_bare_input_stays_as_it_is() -> None:
    assert job_folded_in({"scaleTier": "BASIC"}, "") == {"scaleTier": "BASIC"}


def test_what_stands_around_the_input_is_kept_under_job() -> None:
    body = {"jobId": "a", "labels": {"x": "y"}, "trainingInput": {"region": "r"}}
    assert job_folded_in(body, "") == {"region": "r", "job": {"jobId": "a", "labels": {"x": "y"}}}


def test_extras_may_stand_beside_the_input() -> None:
    assert job_folded_in({"trainingInput": {}, "vertex": {"strategy": "SPOT"}}, "") == {"vertex": {"strategy": "SPOT"}}


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ([], ""),
        ("text", ""),
        ({"trainingInput": None}, "trainingInput"),
        ({"trainingInput": {}, "training_input": {}}, "training_input"),
        ({"trainingInput": {"vertex": {}}, "vertex": {}}, "vertex"),
        ({"trainingInput": {"job": {}}, "jobId": "a"}, "job"),
    ],
)
def test_what_is_no_job_is_refused(data: Any, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        job_folded_in(data, "job.yaml")
    assert (caught.value.source, caught.value.key) == ("job.yaml", key)


def test_the_input_given_is_not_changed() -> None:
    data = {"trainingInput": {"region": "r"}, "vertex": {}}
    job_folded_in(data, "")
    assert data == {"trainingInput": {"region": "r"}, "vertex": {}}
