from __future__ import annotations

from typing import Any

import pytest

from trainops.errors import ConfigError
from trainops.jobspec.training_input import parse_training_input


def test_both_spellings_mean_the_same() -> None:
    rest = parse_training_input({"masterConfig": {"acceleratorConfig": {"count": "2"}}}, "a")
    snake = parse_training_input({"master_config": {"accelerator_config": {"count": 2}}}, "b")
    assert rest.model_dump() == snake.model_dump()


def test_int64_travels_as_text_or_number() -> None:
    assert parse_training_input({"workerCount": "9"}, "").worker_count == 9
    assert parse_training_input({"workerCount": 9}, "").worker_count == 9


@pytest.mark.parametrize("count", [True, 2.0, "2.5", "many", "99999999999999999999", 2**63])
def test_what_is_no_int64_is_refused_by_its_key(count: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_training_input({"workerCount": count}, "job.yaml")
    assert (caught.value.source, caught.value.key) == ("job.yaml", "workerCount")


def test_an_unquoted_version_is_read_as_text() -> None:
    assert parse_training_input({"runtimeVersion": 2.3, "pythonVersion": 3.7}, "").runtime_version == "2.3"


def test_an_unquoted_version_that_yaml_may_have_cut_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"quotes.*2\.1 and 2\.10"):
        parse_training_input({"runtimeVersion": 2.10}, "")


@pytest.mark.case("C088")
def test_an_unknown_key_gets_its_nearest_match() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_training_input({"masterConfig": {"imageUrl": "x"}}, "job.yaml")
    assert caught.value.key == "masterConfig.imageUrl"
    assert caught.value.nearest == "imageUri"


def test_one_field_in_two_spellings_is_refused() -> None:
    with pytest.raises(ConfigError, match="workerCount and worker_count are one field") as caught:
        parse_training_input({"workerCount": 1, "worker_count": 2}, "job.yaml")
    assert (caught.value.source, caught.value.key) == ("job.yaml", "worker_count")


def test_an_unknown_scale_tier_names_those_that_exist() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_training_input({"scaleTier": "STANDARD_2"}, "")
    assert "PREMIUM_1" in caught.value.allowed
    assert caught.value.nearest == "STANDARD_1"


@pytest.mark.parametrize("duration", ["1h", "3600", "-1s", 3600])
def test_a_duration_is_seconds_with_an_s(duration: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_training_input({"scheduling": {"maxRunningTime": duration}}, "")
    assert caught.value.key == "scheduling.maxRunningTime"


@pytest.mark.parametrize("key", ["region", "pythonModule", "runtimeVersion"])
def test_an_empty_text_is_refused_by_its_key(key: str) -> None:
    with pytest.raises(ConfigError, match="is empty") as caught:
        parse_training_input({key: ""}, "")
    assert caught.value.key == key


def test_an_input_that_was_read_can_be_written_and_read_again() -> None:
    data = {"jobId": "a", "trainingInput": {"args": ["1"], "vertex": {"strategy": "SPOT"}}}
    spec = parse_training_input(data, "")
    assert parse_training_input(spec.model_dump(by_alias=True, exclude_none=True), "") == spec
