from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localcloud.vertex.errors import ApiError
from localcloud.vertex.schema import enums_as_numbers, parse_message


def _refusal(value: Any, kind: str = "CustomJobSpec") -> str:
    with pytest.raises(ApiError) as caught:
        parse_message(kind, value, "spec")
    return caught.value.message


def test_both_spellings_of_a_field_are_read() -> None:
    expected = {"workerPoolSpecs": [{"replicaCount": "2"}, {}], "serviceAccount": "me"}
    assert (
        parse_message("CustomJobSpec", {"worker_pool_specs": [{"replica_count": 2}, {}], "service_account": "me"}, "s")
        == expected
    )
    assert parse_message("CustomJobSpec", expected, "s") == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([], "Invalid value at 'spec' (type.googleapis.com/google.cloud.aiplatform.v1.CustomJobSpec), []"),
        ({"network": 3}, "Invalid value at 'spec.network' (TYPE_STRING), 3"),
        ({"enableWebAccess": "yes"}, "Invalid value at 'spec.enable_web_access' (TYPE_BOOL), \"yes\""),
        (
            {"workerPoolSpecs": [{"replicaCount": "many"}]},
            "Invalid value at 'spec.worker_pool_specs[0].replica_count' (TYPE_INT64), \"many\"",
        ),
        (
            {"scheduling": {"timeout": "1h"}},
            "Invalid value at 'spec.scheduling.timeout' (type.googleapis.com/google.protobuf.Duration), \"1h\"",
        ),
        (
            {"scheduling": {"strategy": "FAST"}},
            "Invalid value at 'spec.scheduling.strategy' "
            '(type.googleapis.com/google.cloud.aiplatform.v1.Scheduling.Strategy), "FAST"',
        ),
        (
            {"workerPoolSpecs": [{"containerSpec": {}, "pythonPackageSpec": {}}]},
            "Invalid value at 'spec.worker_pool_specs[0]' (oneof), oneof field 'task' is already set. "
            "Cannot set 'pythonPackageSpec'",
        ),
    ],
)
def test_what_does_not_fit_is_told_as_google_tells_it(value: Any, text: str) -> None:
    assert _refusal(value) == text


def test_all_violations_are_told_at_once() -> None:
    assert _refusal({"a": 1, "b": 2}).count("Cannot find field") == 2


@pytest.mark.parametrize("value", [True, 1.5, 2**31, "1.5", None, [], float("inf")])
def test_what_is_no_int32_is_refused_or_left_out(value: Any) -> None:
    if value is None:
        assert parse_message("DiskSpec", {"bootDiskSizeGb": None}, "disk") == {}
        return
    assert "TYPE_INT32" in _refusal({"bootDiskSizeGb": value}, "DiskSpec")


@pytest.mark.parametrize("value", [" 3 ", "1_000", "٣", "0x10", "", "+1"])
def test_a_number_written_as_text_is_written_in_plain_digits(value: str) -> None:
    assert "TYPE_INT64" in _refusal({"replicaCount": value}, "WorkerPoolSpec")


@pytest.mark.parametrize(
    "value", ["3600", "1m", "1.s", ".5s", "٣s", "1s ", "315576000001s", "-315576000001s", 60, True]
)
def test_what_is_no_duration_is_refused(value: Any) -> None:
    assert "google.protobuf.Duration" in _refusal({"timeout": value}, "Scheduling")


@pytest.mark.parametrize("value", ["0s", "3600s", "1.5s", "-1s", "315576000000s", "-315576000000s", "0.000000001s"])
def test_a_duration_is_seconds_with_an_s(value: str) -> None:
    assert parse_message("Scheduling", {"timeout": value}, "scheduling") == {"timeout": value}


@given(st.sampled_from(["NVIDIA_TESLA_T4", "NVIDIA_L4", "TPU_V3"]), st.integers(1, 2**31 - 1))
def test_names_and_numbers_of_enums_mean_the_same(accelerator: str, count: int) -> None:
    named = {"acceleratorType": accelerator, "acceleratorCount": count}
    numbered = enums_as_numbers("MachineSpec", named)
    assert isinstance(numbered["acceleratorType"], int)
    assert parse_message("MachineSpec", numbered, "machine") == named
