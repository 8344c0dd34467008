"""What Trainops adds to a job keeps the rules of Vertex AI, whatever the names it is made of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from localcloud.vertex.label_rules import label_problems
from localcloud.vertex.schema import parse_message
from localcloud.vertex.validation import check_custom_job
from trainops import naming
from trainops.errors import ConfigError
from trainops.settings import Settings
from trainops.steps.start import JobRequest, attempt_body, frozen_spec, translate_request

SETTINGS = Settings.model_validate({
    "name": "local",
    "project": "my-project",
    "project_number": "12",
    "region": "us-central1",
})
FOLDER = "gs://my-bucket/runs/e/r/g1"
JOB = {
    "region": "us-central1",
    "packageUris": ["gs://my-bucket/trainer.tar.gz"],
    "pythonModule": "trainer.task",
    "runtimeVersion": "2.11",
}


def request(**fields: Any) -> JobRequest:
    given = {"job_key": "k", "run_key": "r", "experiment": "e", "task": "t", "display_name": "d", "training_input": JOB}
    return JobRequest(**{**given, **fields})


def attempt(job: JobRequest) -> dict[str, Any]:
    """Return the body of the hundredth attempt."""
    return attempt_body(frozen_spec(translate_request(SETTINGS, job, FOLDER)), FOLDER, 12, 100)


@pytest.mark.case("C102")
@given(st.text())
@example("")
@example("İ" * 64)
@example("ß" * 64)
@example("a" * 64)
def test_any_text_can_be_made_a_label(text: str) -> None:
    value = naming.label_value(text)
    assert list(label_problems({"key": value})) == []
    assert len(value) <= 63  # what the strictest service of Google takes


@pytest.mark.case("C102")
@given(st.text(min_size=64), st.text(min_size=64))
def test_long_names_stay_distinct(one: str, other: str) -> None:
    assert (naming.label_value(one) == naming.label_value(other)) == (one == other)


@pytest.mark.case("C102")
@pytest.mark.case("C104")
@given(st.text(min_size=1), st.text(min_size=1), st.text(min_size=1), st.integers(-1, 10**6))
@hypothesis_settings(deadline=None)
def test_every_label_of_an_attempt_keeps_the_rules(dag: str, run: str, task: str, index: int) -> None:
    experiment = naming.experiment_of_dag(dag)
    run_key = naming.run_key(experiment, datetime(2026, 1, 2, tzinfo=UTC), dag, run)
    job_key = naming.job_key(run_key, task, index)
    labels = {"dag": naming.label_value(dag)}
    body = attempt(request(job_key=job_key, run_key=run_key, experiment=experiment, task=task, labels=labels))
    check_custom_job(parse_message("CustomJob", body, "custom_job"))
    own = {"managed-by", "experiment", "run-key", "job-key", "task", "dag"}
    assert set(body["labels"]) == own | set(naming.ATTEMPT_LABELS)
    assert all(len(value) <= naming.LABEL_LENGTH for value in body["labels"].values())


def test_a_job_with_all_the_labels_and_variables_it_may_have_is_still_taken() -> None:
    labels = {f"k{n}": "" for n in range(64 - 5 - len(naming.ATTEMPT_LABELS))}
    env = {f"A{n}": "" for n in range(99)}
    body = attempt(request(labels=labels, training_input={**JOB, "vertex": {"env": env}}))
    check_custom_job(parse_message("CustomJob", body, "custom_job"))
    assert len(body["labels"]) == 64
    assert len(body["jobSpec"]["workerPoolSpecs"][0]["pythonPackageSpec"]["env"]) == 100


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"labels": {f"k{n}": "" for n in range(57)}}, "labels"),
        ({"training_input": {**JOB, "vertex": {"env": {f"A{n}": "" for n in range(100)}}}}, "vertex.env"),
    ],
)
def test_one_more_is_refused_before_it_is_sent(fields: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match="and Trainops adds") as caught:
        attempt(request(**fields))
    assert caught.value.key == key


def test_what_an_attempt_sets_itself_is_not_taken_from_the_user() -> None:
    vertex = {"labels": {"attempt": "x"}, "env": {naming.CONTROL_VARIABLE: "x"}}
    body = attempt(request(training_input={**JOB, "vertex": vertex}))
    check_custom_job(parse_message("CustomJob", body, "custom_job"))
    assert (body["labels"]["attempt"], body["labels"]["user-attempt"]) == ("100", "x")
    (variable,) = body["jobSpec"]["workerPoolSpecs"][0]["pythonPackageSpec"]["env"]
    assert variable == {"name": naming.CONTROL_VARIABLE, "value": f"{FOLDER}/a100/control"}


def test_labels_of_the_user_stand_beside_those_of_the_input_and_of_trainops() -> None:
    fields = {**JOB, "job": {"labels": {"team": "ads", "x": "1"}}}
    labels = attempt(request(training_input=fields, user_labels={"team": "ads", "task": "mine"}))["labels"]
    assert {name: labels[name] for name in ("team", "x", "task", "user-task")} == {
        "team": "ads", "x": "1", "task": "t", "user-task": "mine",
    }  # fmt: skip


def test_a_label_with_two_values_is_refused() -> None:
    fields = {**JOB, "job": {"labels": {"team": "ads"}}}
    with pytest.raises(ConfigError, match="give it in one of the two places") as caught:
        attempt(request(training_input=fields, user_labels={"team": "search"}))
    assert caught.value.key == "labels.team"


def test_a_label_that_is_no_text_is_refused() -> None:
    with pytest.raises(ConfigError, match="write it in quotes") as caught:
        attempt(request(user_labels={"version": 2}))
    assert caught.value.key == "job.labels.version"
