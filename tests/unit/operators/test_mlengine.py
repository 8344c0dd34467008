from __future__ import annotations

import inspect
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from trainops.jobspec.installation import installed_packages
from trainops.operators.cancel_job import MLEngineTrainingCancelJobOperator
from trainops.operators.mlengine import MLEngineStartTrainingJobOperator
from trainops.operators.training_fields import TrainingArguments
from trainops.providers.google.cloud.hooks.mlengine import MLEngineHook
from trainops.providers.google.cloud.links.mlengine import MLEngineJobDetailsLink
from trainops.providers.google.cloud.operators import mlengine as old

LAST_RELEASED = (
    "job_id", "region", "project_id", "package_uris", "training_python_module", "training_args", "scale_tier",
    "master_type", "master_config", "runtime_version", "python_version", "job_dir", "service_account", "gcp_conn_id",
    "mode", "labels", "impersonation_chain", "hyperparameters", "deferrable", "cancel_on_kill",
)  # fmt: skip
"""Arguments of MLEngineStartTrainingJobOperator in the Google provider 14.1.0."""

ARGUMENTS: dict[str, Any] = {
    "job_id": "a-b.c", "region": "europe-west4", "package_uris": "gs://b/p.tar.gz", "runtime_version": 2.3,
    "training_python_module": "trainer.task", "training_args": ["--steps", "1"], "python_version": "3.7",
    "scale_tier": "CUSTOM", "master_type": "n1-standard-8", "labels": {"team": "ads"},
}  # fmt: skip


def context() -> Any:
    instance = SimpleNamespace(dag_id="old_dag", run_id="r", task_id="train", map_index=-1)
    return {"ti": instance, "dag_run": SimpleNamespace(logical_date=datetime(2026, 1, 1, tzinfo=UTC), run_after=None)}


def test_every_argument_of_the_last_released_operator_is_taken_and_every_templated_one_templated() -> None:
    taken = {
        name for klass in (MLEngineStartTrainingJobOperator, TrainingArguments)
        for name in inspect.signature(klass).parameters
    }  # fmt: skip
    assert set(LAST_RELEASED) <= taken
    not_templated = {"deferrable", "cancel_on_kill"}
    assert set(LAST_RELEASED) - not_templated <= set(MLEngineStartTrainingJobOperator.template_fields)


def test_every_templated_field_is_an_attribute() -> None:
    operator = MLEngineStartTrainingJobOperator(task_id="train")
    assert [name for name in operator.template_fields if not hasattr(operator, name)] == []


def test_what_the_last_released_operator_lacked_is_templated() -> None:
    lacked = {
        f"{role}_{what}" for role in ("worker", "parameter_server", "evaluator") for what in ("type", "count", "config")
    }
    assert lacked | {"scheduling", "training_input", "training_input_uri"} <= set(
        MLEngineStartTrainingJobOperator.template_fields
    )


def test_default_args_of_the_dag_reach_the_fields_of_the_job_also_through_the_old_module_path() -> None:
    with DAG("defaults", schedule=None, default_args={"region": "asia-east1", "project_id": "p"}):
        for kind in (MLEngineStartTrainingJobOperator, old.MLEngineStartTrainingJobOperator):
            operator = kind(task_id=kind.__module__.replace(".", "_"), job_id="j")
            assert (vars(operator)["region"], operator.project_id) == ("asia-east1", "p")


def test_an_argument_that_there_is_not_is_refused_when_the_dag_file_is_parsed() -> None:
    with pytest.raises(TypeError, match="master_tpye"):
        MLEngineStartTrainingJobOperator(task_id="train", master_tpye="n1-standard-8")


def test_it_can_be_mapped_over_a_field_of_the_job() -> None:
    with DAG("mapped", schedule=None):
        mapped = MLEngineStartTrainingJobOperator.partial(task_id="train", region="us-central1").expand(
            master_type=["n1-standard-4", "n1-standard-8"]
        )
    assert mapped.task_id == "train"


def test_only_the_old_module_path_waits_for_the_jobs_end_unless_told_otherwise() -> None:
    assert MLEngineStartTrainingJobOperator(task_id="train").wait is False
    assert old.MLEngineStartTrainingJobOperator(task_id="train").wait is True
    assert old.MLEngineStartTrainingJobOperator(task_id="train", wait=False).wait is False


def test_the_older_name_the_hook_and_the_link_are_found_under_the_old_module_paths() -> None:
    assert old.MLEngineTrainingOperator is old.MLEngineStartTrainingJobOperator
    assert MLEngineHook.__module__ == "trainops.hooks.mlengine"
    assert [type(link) for link in old.MLEngineTrainingOperator.operator_extra_links] == [MLEngineJobDetailsLink]


@pytest.mark.case("C074")
def test_a_dry_run_needs_no_service_and_answers_the_job(capsys: pytest.CaptureFixture[str]) -> None:
    operator = MLEngineStartTrainingJobOperator(task_id="train", mode="DRY_RUN", **ARGUMENTS)
    job = operator.execute(context())["job"]
    assert job["displayName"] == "a-b.c"
    assert job["labels"]["team"] == "ads"
    pool = job["jobSpec"]["workerPoolSpecs"][0]
    assert pool["machineSpec"] == {"machineType": "n1-standard-8"}
    assert installed_packages(pool["containerSpec"]) == ("gs://b/p.tar.gz",)
    assert pool["containerSpec"]["args"] == ["--steps", "1"]
    told = capsys.readouterr().out
    assert "mapped masterType" in told
    assert "the job for europe-west4" in told
    assert "this job would pay: on demand, $0.46 per hour" in told
    assert "the list has none of europe-west4" in told


def test_labels_with_names_of_trainops_own_are_kept_under_others(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("dag", "task", "experiment", "run-key", "job-key", "generation", "attempt", "spec-hash", "managed-by")
    labels = {**dict.fromkeys(names, "mine"), "team": "ads"}
    operator = MLEngineStartTrainingJobOperator(task_id="train", mode="DRY_RUN", **(ARGUMENTS | {"labels": labels}))
    found = operator.execute(context())["job"]["labels"]
    assert {name: found[f"user-{name}"] for name in names} == dict.fromkeys(names, "mine")
    assert (found["team"], found["dag"], found["task"]) == ("ads", "old_dag", "train")
    assert "mine" not in {found[name] for name in names}
    assert "changed job.labels" in capsys.readouterr().out


def test_a_label_with_two_values_is_refused() -> None:
    body = {"labels": {"team": "search"}, "trainingInput": {"scaleTier": "CUSTOM"}}
    operator = MLEngineStartTrainingJobOperator(task_id="train", mode="DRY_RUN", **ARGUMENTS, training_input=body)
    with pytest.raises(AirflowFailException, match=r"train: labels\.team: .*search"):
        operator.execute(context())


@pytest.mark.parametrize("job_id", [None, "", "None"])
def test_a_cancellation_without_an_id_is_skipped(job_id: Any) -> None:
    with pytest.raises(AirflowSkipException, match="nothing was submitted, nothing to cancel"):
        MLEngineTrainingCancelJobOperator(task_id="cancel", job_id=job_id).execute(context())


def test_a_dry_run_shows_a_tuning_job_as_convert_does(capsys: pytest.CaptureFixture[str]) -> None:
    tuning = {
        "goal": "MAXIMIZE", "hyperparameterMetricTag": "accuracy", "maxTrials": 4,
        "params": [{"parameterName": "lr", "type": "DOUBLE", "minValue": 0.1, "maxValue": 1.0}],
    }  # fmt: skip
    operator = MLEngineStartTrainingJobOperator(task_id="train", mode="DRY_RUN", **ARGUMENTS, hyperparameters=tuning)
    job = operator.execute(context())["job"]
    assert job["maxTrialCount"] == 4
    assert job["studySpec"]["metrics"] == [{"metricId": "accuracy", "goal": "MAXIMIZE"}]
    assert job["trialJobSpec"]["workerPoolSpecs"][0]["machineSpec"] == {"machineType": "n1-standard-8"}
    assert "mapped hyperparameters.maxTrials" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mode": "DRYRUN"}, "train: mode: .*DRYRUN.*DRY_RUN"),
        ({"mode": "DRY_RUN", "project_id": "elsewhere"}, "project_id: .*elsewhere"),
        ({"mode": "DRY_RUN", "hyperparameters": {"maxTrials": 2}}, "hyperparameters"),
        ({"mode": "DRY_RUN", "training_input": {}, "training_input_uri": "gs://b/x.yaml"}, "keep one of the two"),
    ],
)
def test_what_cannot_be_is_refused_by_name_without_a_retry(changes: dict[str, Any], message: str) -> None:
    operator = MLEngineStartTrainingJobOperator(task_id="train", **(ARGUMENTS | changes))
    with pytest.raises(AirflowFailException, match=message):
        operator.execute(context())
