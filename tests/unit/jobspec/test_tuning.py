from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.cloud.aiplatform_v1.types import HyperparameterTuningJob
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st

from trainops.errors import ConfigError
from trainops.jobspec.training_input import TrainingInput, parse_training_input
from trainops.jobspec.translate import Translation, translate
from trainops.jobspec.tuning import translate_tuning

GOLDEN = Path(__file__).parent / "golden" / "tuning"
INPUTS = sorted((GOLDEN / "inputs").glob("*.yaml"))
UNITS = {"parameterName": "units", "type": "INTEGER", "minValue": 8, "maxValue": 64}


def _spec(name: str) -> TrainingInput:
    path = GOLDEN / "inputs" / f"{name}.yaml"
    return parse_training_input(yaml.safe_load(path.read_text()), path.name)


def _tuning(spec: TrainingInput, substitute: str = "warn") -> Translation:
    return translate_tuning(
        spec, display_name="golden", labels={"managed-by": "trainops"}, substitute=substitute, env={"A": "b"}
    )


def _with(**hyper: Any) -> TrainingInput:
    """The job of `what_is_required`, with other fields in its hyperparameters; None leaves one out."""
    given = yaml.safe_load((GOLDEN / "inputs" / "what_is_required.yaml").read_text())
    fields = {"params": [UNITS]} | hyper
    given["hyperparameters"] = {key: value for key, value in fields.items() if value is not None}
    return parse_training_input(given, "job.yaml")


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: path.stem)
def test_a_known_input_gives_the_request_on_file(path: Path) -> None:
    assert _tuning(_spec(path.stem)).job == json.loads((GOLDEN / f"{path.stem}.json").read_text())


@pytest.mark.case("C077")
@pytest.mark.parametrize("path", INPUTS, ids=lambda path: path.stem)
def test_each_trial_is_the_custom_job_of_the_same_input(path: Path) -> None:
    spec = _spec(path.stem)
    options: dict[str, Any] = {"display_name": "golden", "labels": {"managed-by": "trainops"}, "env": {"A": "b"}}
    custom = translate(spec.model_copy(update={"hyperparameters": None}), substitute="warn", **options)
    tuning = _tuning(spec)
    assert tuning.job["trialJobSpec"] == custom.job["jobSpec"]
    rest = {key: value for key, value in custom.job.items() if key != "jobSpec"}
    assert rest.items() <= tuning.job.items()
    assert tuning.region == custom.region
    assert [note.field for note in tuning.notes][: len(custom.notes)] == [note.field for note in custom.notes]
    assert not any(note.target.startswith("jobSpec") for note in tuning.notes)


def test_accelerators_and_machines_are_those_of_the_trials_at_one_time() -> None:
    found = _tuning(_spec("every_kind_of_parameter"))
    assert found.accelerators == {"NVIDIA_TESLA_V100": 4 * 3}
    assert found.machines == {"n1-standard-8": 4 * 3}


def test_no_more_trials_run_at_one_time_than_there_are() -> None:
    found = _tuning(_spec("grid_in_snake_case"))
    assert found.job["parallelTrialCount"] == found.job["maxTrialCount"] == 4
    assert found.machines == {"n1-standard-8": 4 * 5, "n1-standard-4": 4 * 3}


def test_one_folder_for_all_trials_is_noted_as_changed() -> None:
    notes = [note for note in _tuning(_spec("every_kind_of_parameter")).notes if note.field == "jobDir"]
    assert [note.verdict for note in notes] == ["mapped", "changed"]
    assert "the same in every trial" in notes[1].text


def test_what_is_not_given_is_noted_as_defaulted() -> None:
    found = _tuning(_spec("what_is_required"))
    defaulted = {note.field for note in found.notes if note.verdict == "defaulted"}
    fields = ("goal", "hyperparameterMetricTag", "algorithm", "maxTrials", "maxParallelTrials")
    assert {f"hyperparameters.{field}" for field in fields} <= defaulted


def test_an_earlier_job_to_go_on_with_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="cannot go on with an earlier tuning job") as caught:
        _tuning(_with(resumePreviousJobId="tuning_1"))
    assert caught.value.key == "hyperparameters.resumePreviousJobId"
    assert "leave it out" in caught.value.next_step


@pytest.mark.parametrize(
    ("field", "value"), [("maxTrials", 0), ("maxTrials", -1), ("maxParallelTrials", 0), ("maxFailedTrials", -1)]
)
def test_a_number_of_trials_that_cannot_be_is_refused(field: str, value: int) -> None:
    with pytest.raises(ConfigError) as caught:
        _tuning(_with(**{field: value}))
    assert caught.value.key == f"hyperparameters.{field}"


def test_a_job_without_hyperparameters_is_no_tuning_job() -> None:
    spec = _with().model_copy(update={"hyperparameters": None})
    with pytest.raises(ConfigError, match="a tuning job needs them") as caught:
        _tuning(spec)
    assert caught.value.source == "job.yaml"


def test_the_trials_obey_the_policy_for_substitutes() -> None:
    with pytest.raises(ConfigError) as caught:
        _tuning(_spec("grid_in_snake_case"), "refuse")
    assert (caught.value.source, caught.value.key) == ("grid_in_snake_case.yaml", "scaleTier")


def test_a_custom_job_says_that_tuning_jobs_are_not_run_yet() -> None:
    with pytest.raises(ConfigError, match="a tuning job is translated, and not run yet"):
        translate(_with(), display_name="job", labels={}, substitute="warn")


WHOLE = yaml.safe_load((GOLDEN / "inputs" / "every_kind_of_parameter.yaml").read_text())["trainingInput"]
FIELDS = sorted(WHOLE["hyperparameters"])
PARAMETER_FIELDS = ("parameterName", "type", "minValue", "maxValue", "categoricalValues", "discreteValues", "scaleType")
VALUE = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.sampled_from(["DOUBLE", "1e400"])
)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_mutated_tuning_job_is_translated_or_refused_by_name(data: st.DataObject) -> None:
    job = copy.deepcopy(WHOLE)
    value = data.draw(VALUE | st.lists(VALUE, max_size=2) | st.dictionaries(st.text(max_size=4), VALUE, max_size=2))
    if data.draw(st.booleans()):
        job["hyperparameters"][data.draw(st.sampled_from(FIELDS))] = value
    else:
        param = data.draw(st.sampled_from(job["hyperparameters"]["params"]))
        param[data.draw(st.sampled_from(PARAMETER_FIELDS))] = value
    refused = None
    try:
        found = _tuning(parse_training_input(job, "job.yaml"))
    except ConfigError as error:
        refused = error.key
    if refused is not None:
        assert refused.startswith("hyperparameters")
        return
    message = HyperparameterTuningJob.pb(HyperparameterTuningJob())
    json_format.ParseDict(found.job, message, ignore_unknown_fields=False)
    assert len(message.study_spec.parameters) == len(job["hyperparameters"]["params"])
