from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainops.errors import ConfigError
from trainops.jobspec.hyperparameters import HyperparameterSpec
from trainops.jobspec.notes import Note, Notebook
from trainops.jobspec.study import study_spec

RATE = {"parameterName": "lr", "type": "DOUBLE", "minValue": 0.1, "maxValue": 1.0}
UNITS = {"parameterName": "units", "type": "INTEGER", "minValue": 8, "maxValue": 64}
CHOICE = {"parameterName": "opt", "type": "CATEGORICAL", "categoricalValues": ["adam", "sgd"]}
STEPS = {"parameterName": "batch", "type": "DISCRETE", "discreteValues": [16, 32]}


def _study(*params: dict[str, Any], **fields: Any) -> tuple[dict[str, Any], list[Note]]:
    notebook = Notebook("job.yaml", "warn")
    hyper = HyperparameterSpec.model_validate({"params": list(params), **fields})
    return study_spec(hyper, notebook), notebook.notes


@pytest.mark.parametrize(
    ("param", "spec"),
    [
        (RATE, {"doubleValueSpec": {"minValue": 0.1, "maxValue": 1.0}}),
        (RATE | {"minValue": "1e-4"}, {"doubleValueSpec": {"minValue": 0.0001, "maxValue": 1.0}}),
        (UNITS, {"integerValueSpec": {"minValue": "8", "maxValue": "64"}}),
        (UNITS | {"minValue": -8.0}, {"integerValueSpec": {"minValue": "-8", "maxValue": "64"}}),
        (CHOICE, {"categoricalValueSpec": {"values": ["adam", "sgd"]}}),
        (STEPS, {"discreteValueSpec": {"values": [16.0, 32.0]}}),
        (STEPS | {"scaleType": "UNIT_LOG_SCALE"}, {"discreteValueSpec": {"values": [16.0, 32.0]}}),
    ],
)
def test_a_parameter_keeps_its_name_type_values_and_scale(param: dict[str, Any], spec: dict[str, Any]) -> None:
    (found,) = _study(param)[0]["parameters"]
    scale = {"scaleType": param["scaleType"]} if "scaleType" in param else {}
    assert found == {"parameterId": param["parameterName"], **spec, **scale}


def test_the_metric_and_the_goal_are_those_of_ai_platform_when_absent() -> None:
    assert _study(CHOICE)[0]["metrics"] == [{"metricId": "training/hptuning/metric", "goal": "MAXIMIZE"}]


def test_early_stopping_is_the_median_rule_and_noted_as_changed() -> None:
    study, notes = _study(CHOICE, enableTrialEarlyStopping=True)
    assert study["medianAutomatedStoppingSpec"] == {}
    assert [note.verdict for note in notes if note.field.endswith("EarlyStopping")] == ["changed"]
    assert "medianAutomatedStoppingSpec" not in _study(CHOICE, enableTrialEarlyStopping=False)[0]


@pytest.mark.parametrize("algorithm", ["GRID_SEARCH", "RANDOM_SEARCH"])
def test_an_algorithm_is_sent_by_its_name(algorithm: str) -> None:
    assert _study(CHOICE, algorithm=algorithm)[0]["algorithm"] == algorithm


def test_the_default_algorithm_is_not_sent() -> None:
    assert "algorithm" not in _study(CHOICE, algorithm="ALGORITHM_UNSPECIFIED")[0]


@pytest.mark.parametrize(
    ("param", "field"),
    [
        (CHOICE | {"minValue": 1}, "minValue"),
        (STEPS | {"maxValue": 1}, "maxValue"),
        (UNITS | {"discreteValues": [1]}, "discreteValues"),
        (RATE | {"categoricalValues": ["a"]}, "categoricalValues"),
        (CHOICE | {"scaleType": "UNIT_LOG_SCALE"}, "scaleType"),
    ],
)
def test_what_another_type_has_is_noted_and_not_sent(param: dict[str, Any], field: str) -> None:
    study, notes = _study(param)
    assert [(note.verdict, note.target) for note in notes if note.field.endswith(field)] == [("changed", "")]
    plain = {key: value for key, value in param.items() if key != field}
    assert study == _study(plain)[0]


@pytest.mark.parametrize(
    ("params", "key"),
    [
        ([], "params"),
        ([CHOICE, CHOICE], "params"),
        ([CHOICE | {"parameterName": "a b"}], "params.0.parameterName"),
        ([RATE, {"type": "DOUBLE"}], "params.1.parameterName"),
        ([{"parameterName": "a"}], "params.0.type"),
        ([{"parameterName": "a", "type": "PARAMETER_TYPE_UNSPECIFIED"}], "params.0.type"),
        ([{"parameterName": "a", "type": "DOUBLE", "maxValue": 1}], "params.0.minValue"),
        ([{"parameterName": "a", "type": "INTEGER", "minValue": 1}], "params.0.maxValue"),
        ([{"parameterName": "a", "type": "CATEGORICAL"}], "params.0.categoricalValues"),
        ([{"parameterName": "a", "type": "DISCRETE", "discreteValues": []}], "params.0.discreteValues"),
        ([STEPS | {"discreteValues": [1, 1]}], "params.0.discreteValues"),
        ([STEPS | {"discreteValues": list(range(1001))}], "params.0.discreteValues"),
        ([STEPS | {"discreteValues": [0, 1], "scaleType": "UNIT_REVERSE_LOG_SCALE"}], "params.0.scaleType"),
        ([RATE | {"minValue": 2}], "params.0.maxValue"),
        ([UNITS | {"maxValue": 8.5}], "params.0.maxValue"),
        ([UNITS | {"maxValue": 1e30}], "params.0.maxValue"),
        ([RATE | {"minValue": 0, "scaleType": "UNIT_LOG_SCALE"}], "params.0.scaleType"),
    ],
)
def test_what_cannot_be_searched_is_refused_by_name(params: list[dict[str, Any]], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _study(*params)
    assert (caught.value.source, caught.value.key) == ("job.yaml", f"hyperparameters.{key}")


def test_a_grid_over_a_range_of_numbers_is_refused() -> None:
    with pytest.raises(ConfigError, match="lr is one") as caught:
        _study(CHOICE, RATE, algorithm="GRID_SEARCH")
    assert caught.value.key == "hyperparameters.algorithm"


def test_a_metric_with_spaces_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        _study(CHOICE, hyperparameterMetricTag="the loss")
    assert caught.value.key == "hyperparameters.hyperparameterMetricTag"


_NAMES = st.text("abcxyz_", min_size=1, max_size=4)
_NUMBERS = st.floats(-100, 100) | st.integers(-5, 5) | st.none()
_PARAMS = st.fixed_dictionaries(
    {"parameterName": _NAMES},
    optional={
        "type": st.sampled_from(["DOUBLE", "INTEGER", "CATEGORICAL", "DISCRETE"]),
        "minValue": _NUMBERS,
        "maxValue": _NUMBERS,
        "categoricalValues": st.lists(_NAMES, max_size=3),
        "discreteValues": st.lists(st.integers(-3, 9), max_size=3),
        "scaleType": st.sampled_from(["NONE", "UNIT_LINEAR_SCALE", "UNIT_LOG_SCALE", "UNIT_REVERSE_LOG_SCALE"]),
    },
)


@given(st.lists(_PARAMS, max_size=3))
def test_any_parameters_become_as_many_or_one_error_that_names_a_field(params: list[dict[str, Any]]) -> None:
    refused = ""
    try:
        study, notes = _study(*params)
    except ConfigError as error:
        refused = error.key
    if refused:
        assert refused.startswith("hyperparameters.params")
        return
    assert [found["parameterId"] for found in study["parameters"]] == [param["parameterName"] for param in params]
    assert [note.value["type"] for note in notes if note.target.startswith("studySpec.parameters[")] == [
        param["type"] for param in params
    ]
