"""HyperparameterSpec of AI Platform in, StudySpec of Vertex AI out.

Source: message types of google-cloud-aiplatform, aiplatform_v1.types.study, and the discovery document of
ml.googleapis.com v1, revision 20251213.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from trainops.jobspec.hyperparameters import HyperparameterSpec, ParameterSpec
from trainops.jobspec.notes import Notebook

_KEY = "hyperparameters"
_METRIC = "training/hptuning/metric"
_LOG_SCALES = ("UNIT_LOG_SCALE", "UNIT_REVERSE_LOG_SCALE")
_DISCRETE_VALUES = 1000
_DISCRETE_DISTANCE = 1e-10
_TYPES = ("DOUBLE", "INTEGER", "CATEGORICAL", "DISCRETE")
_VALUES: dict[str, tuple[str, ...]] = {
    "DOUBLE": ("minValue", "maxValue"),
    "INTEGER": ("minValue", "maxValue"),
    "CATEGORICAL": ("categoricalValues",),
    "DISCRETE": ("discreteValues",),
}


def study_spec(hyper: HyperparameterSpec, notebook: Notebook) -> dict[str, Any]:
    """Return the StudySpec of a tuning job.

    :raises ConfigError: no parameters, a parameter without its values, or values that cannot be searched.
    """
    params = _params(hyper, notebook)
    found = {
        "metrics": [_metric(hyper, notebook)],
        "parameters": [_parameter(param, index, notebook) for index, param in enumerate(params)],
    }
    return found | _algorithm(hyper, params, notebook) | _early_stopping(hyper, notebook)


def _params(hyper: HyperparameterSpec, notebook: Notebook) -> Sequence[ParameterSpec]:
    key, params = f"{_KEY}.params", hyper.params or []
    if not params:
        raise notebook.error(
            key, "missing: a tuning job varies at least one parameter", next_step="list them in params"
        )
    for index, param in enumerate(params):
        name = param.parameter_name
        where = f"{key}.{index}.parameterName"
        if name is None:
            raise notebook.error(where, "missing", next_step="name the argument of the program, without the dashes")
        if any(letter.isspace() for letter in name):
            step = "rename the argument, in the program too"
            raise notebook.error(where, "a name has no spaces", value=name, next_step=step)
    name, number = Counter(param.parameter_name for param in params).most_common(1)[0]
    if number > 1:
        raise notebook.error(key, "a parameter stands twice", value=name, next_step="keep one of them")
    return params


def _metric(hyper: HyperparameterSpec, notebook: Notebook) -> dict[str, Any]:
    key, target = f"{_KEY}.hyperparameterMetricTag", "studySpec.metrics[0].metricId"
    tag = hyper.hyperparameter_metric_tag
    reported = "Vertex AI reads it from the package cloudml-hypertune, not from TensorFlow's summaries"
    if tag is None:
        notebook.defaulted(key, None, target, f"{_METRIC}; {reported}")
    elif any(letter.isspace() for letter in tag):
        raise notebook.error(key, "a metric of Vertex AI has no spaces in its name", value=tag, next_step="rename it")
    else:
        notebook.changed(key, tag, target, reported)
    goal, key, target = hyper.goal, f"{_KEY}.goal", "studySpec.metrics[0].goal"
    if goal in {None, "GOAL_TYPE_UNSPECIFIED"}:
        notebook.defaulted(key, goal, target, "MAXIMIZE, the default of AI Platform")
        goal = "MAXIMIZE"
    else:
        notebook.mapped(key, goal, target)
    return {"metricId": tag or _METRIC, "goal": goal}


def _parameter(param: ParameterSpec, index: int, notebook: Notebook) -> dict[str, Any]:
    key = f"{_KEY}.params.{index}"
    if param.type not in _TYPES:
        raise notebook.error(f"{key}.type", "missing", value=param.type, allowed=_TYPES)
    _check_own_values(param, param.type, key, notebook)
    if param.type == "CATEGORICAL":
        found: dict[str, Any] = {"categoricalValueSpec": {"values": param.categorical_values}}
    elif param.type == "DISCRETE":
        found = {"discreteValueSpec": {"values": _discrete_values(param, key, notebook)}}
    else:
        found = _range(param, key, notebook)
    found = {"parameterId": param.parameter_name} | found | _scale(param, key, notebook)
    given = param.model_dump(by_alias=True, exclude_none=True)
    notebook.mapped(key, given, f"studySpec.parameters[{index}]", "passed to each trial as --NAME=VALUE")
    return found


def _check_own_values(param: ParameterSpec, kind: str, key: str, notebook: Notebook) -> None:
    given = param.model_dump(by_alias=True, exclude_none=True)
    for field in ("minValue", "maxValue", "categoricalValues", "discreteValues"):
        value = given.get(field)
        if field in _VALUES[kind]:
            if value is None or value == []:
                step = f"add it: a {kind} parameter has {' and '.join(_VALUES[kind])}"
                raise notebook.error(
                    f"{key}.{field}", f"missing: a {kind} parameter needs it", value=value, next_step=step
                )
        elif value not in (None, []):
            notebook.changed(f"{key}.{field}", value, "", f"not sent: a {kind} parameter has none")


def _range(param: ParameterSpec, key: str, notebook: Notebook) -> dict[str, Any]:
    low, high = param.min_value, param.max_value
    assert low is not None
    assert high is not None
    if low > high:
        raise notebook.error(f"{key}.maxValue", "is less than minValue", value=high, next_step="swap them")
    if param.type == "DOUBLE":
        return {"doubleValueSpec": {"minValue": low, "maxValue": high}}
    for field, value in (("minValue", low), ("maxValue", high)):
        if not value.is_integer() or not -(2**63) <= value < 2**63:
            step = "write a whole number of 64 bits, or take the type DOUBLE"
            raise notebook.error(
                f"{key}.{field}", "an INTEGER parameter has whole numbers", value=value, next_step=step
            )
    return {"integerValueSpec": {"minValue": str(int(low)), "maxValue": str(int(high))}}


def _discrete_values(param: ParameterSpec, key: str, notebook: Notebook) -> list[float]:
    values, key = param.discrete_values or [], f"{key}.discreteValues"
    if len(values) > _DISCRETE_VALUES:
        raise notebook.error(
            key,
            f"a parameter has at most {_DISCRETE_VALUES} values; this has {len(values)}",
            value=f"{len(values)} values",
            next_step="give it as INTEGER or DOUBLE, with minValue and maxValue",
        )
    for one, other in pairwise(values):
        if other - one < _DISCRETE_DISTANCE:
            raise notebook.error(
                key, f"values increase, by at least {_DISCRETE_DISTANCE}", value=other, next_step="sort them"
            )
    return values


def _scale(param: ParameterSpec, key: str, notebook: Notebook) -> dict[str, Any]:
    scale = param.scale_type
    if scale in {None, "NONE"}:
        return {}
    if param.type == "CATEGORICAL":
        notebook.changed(f"{key}.scaleType", scale, "", "not sent: categories have no scale")
        return {}
    least = param.discrete_values[0] if param.type == "DISCRETE" and param.discrete_values else param.min_value
    if scale in _LOG_SCALES and least is not None and least <= 0:
        raise notebook.error(
            f"{key}.scaleType",
            f"a logarithmic scale needs values above 0; the least is {least}",
            value=scale,
            next_step="raise the least value, or write UNIT_LINEAR_SCALE",
        )
    return {"scaleType": scale}


def _algorithm(hyper: HyperparameterSpec, params: Sequence[ParameterSpec], notebook: Notebook) -> dict[str, Any]:
    key, algorithm = f"{_KEY}.algorithm", hyper.algorithm
    if algorithm in {None, "ALGORITHM_UNSPECIFIED"}:
        notebook.defaulted(key, algorithm, "", "not sent: Vertex AI's own, Bayesian as AI Platform's was")
        return {}
    double = next((param.parameter_name for param in params if param.type == "DOUBLE"), None)
    if algorithm == "GRID_SEARCH" and double is not None:
        raise notebook.error(
            key,
            f"a grid has no DOUBLE parameters, and {double} is one",
            value=algorithm,
            next_step="give it as DISCRETE with discreteValues, or take RANDOM_SEARCH",
        )
    notebook.mapped(key, algorithm, "studySpec.algorithm")
    return {"algorithm": algorithm}


def _early_stopping(hyper: HyperparameterSpec, notebook: Notebook) -> dict[str, Any]:
    key, wanted = f"{_KEY}.enableTrialEarlyStopping", hyper.enable_trial_early_stopping
    if wanted is None:
        return {}
    if not wanted:
        notebook.mapped(key, wanted, "", "not sent: without a rule no trial ends early")
        return {}
    text = "AI Platform chose its rule itself; here a trial ends that stays below the median of the finished ones"
    notebook.changed(key, wanted, "studySpec.medianAutomatedStoppingSpec", text)
    return {"medianAutomatedStoppingSpec": {}}
