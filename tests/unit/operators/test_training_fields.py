from __future__ import annotations

from typing import Any

import pytest

from trainops.errors import ConfigError
from trainops.operators.mlengine import MLEngineStartTrainingJobOperator
from trainops.operators.training_fields import FIELDS, merged_training_input


def operator(**arguments: Any) -> MLEngineStartTrainingJobOperator:
    return MLEngineStartTrainingJobOperator(task_id="submit", **arguments)


def test_the_old_operators_arguments_become_a_training_input() -> None:
    old = operator(
        job_id="j", region="europe-west1", package_uris=["gs://b/p.tar.gz"], training_python_module="trainer.task",
        training_args=["--a"], scale_tier="CUSTOM", master_type="n1-standard-8", runtime_version="2.3", job_dir="gs://b/j",
    )  # fmt: skip
    assert merged_training_input(old, default_region="us-central1") == {
        "region": "europe-west1", "packageUris": ["gs://b/p.tar.gz"], "pythonModule": "trainer.task", "args": ["--a"],
        "scaleTier": "CUSTOM", "masterType": "n1-standard-8", "runtimeVersion": "2.3", "jobDir": "gs://b/j",
    }  # fmt: skip


@pytest.mark.case("C088")
@pytest.mark.parametrize(
    "whole",
    [
        {"scaleTier": "CUSTOM", "masterType": "n1-standard-8"},
        {"scale_tier": "CUSTOM", "master_type": "n1-standard-8"},
        {"trainingInput": {"scaleTier": "CUSTOM", "masterType": "n1-standard-8"}},
        {"training_input": {"scale_tier": "CUSTOM", "master_type": "n1-standard-8"}},
    ],
)
def test_a_whole_training_input_is_completed_in_every_spelling(whole: dict[str, Any]) -> None:
    merged = merged_training_input(
        operator(training_input=whole, training_python_module="trainer.task"), default_region="us-central1"
    )
    assert merged == {
        "scaleTier": "CUSTOM", "masterType": "n1-standard-8", "pythonModule": "trainer.task", "region": "us-central1",
    }  # fmt: skip


@pytest.mark.parametrize("whole", [{"masterType": "n1-standard-8"}, {"master_type": "n1-standard-8"}])
def test_what_both_say_differently_is_refused(whole: dict[str, Any]) -> None:
    both = operator(training_input=whole, master_type="n1-standard-4")
    with pytest.raises(ConfigError, match=r"submit: master_type: .*n1-standard-8.*got 'n1-standard-4'"):
        merged_training_input(both, default_region="us-central1")


def test_a_training_input_that_is_no_mapping_is_refused() -> None:
    with pytest.raises(ConfigError, match="TrainingInput is a mapping"):
        merged_training_input(operator(training_input="scaleTier: CUSTOM"), default_region="us-central1")


def test_every_merged_argument_is_templated() -> None:
    assert set(FIELDS) <= set(MLEngineStartTrainingJobOperator.template_fields)


def test_what_the_old_operator_lacked_becomes_a_training_input_too() -> None:
    given = {
        f"{role}_{what}": value
        for role in ("worker", "parameter_server", "evaluator")
        for what, value in (("type", "n1-highmem-8"), ("count", 2), ("config", {"diskConfig": {"bootDiskSizeGb": 200}}))
    }
    merged = merged_training_input(operator(**given, scheduling={"maxWaitTime": "3600s"}), default_region="r")
    assert merged["parameterServerType"] == merged["evaluatorType"] == merged["workerType"] == "n1-highmem-8"
    assert merged["parameterServerCount"] == merged["evaluatorCount"] == merged["workerCount"] == 2
    assert merged["evaluatorConfig"] == {"diskConfig": {"bootDiskSizeGb": 200}}
    assert merged["scheduling"] == {"maxWaitTime": "3600s"}


def test_a_single_text_is_one_package_and_one_argument_and_an_empty_one_is_none() -> None:
    old = operator(package_uris="gs://b/p.tar.gz", training_args="--a", job_dir="", hyperparameters={})
    assert merged_training_input(old, default_region="r") == {
        "packageUris": ["gs://b/p.tar.gz"], "args": ["--a"], "region": "r",
    }  # fmt: skip
    assert merged_training_input(operator(training_args=""), default_region="r") == {"region": "r"}


def test_a_count_that_a_template_made_a_text_is_the_same_count() -> None:
    both = operator(training_input={"workerCount": 9}, worker_count="9")
    assert merged_training_input(both, default_region="r")["workerCount"] == "9"


def test_no_workers_is_said_and_not_dropped() -> None:
    assert merged_training_input(operator(worker_count=0), default_region="r")["workerCount"] == 0


def test_a_stored_training_input_is_completed_like_a_given_one() -> None:
    stored = {"jobId": "j", "trainingInput": {"master_type": "n1-standard-8"}}
    merged = merged_training_input(operator(training_args=["-v"]), default_region="r", stored=stored)
    assert merged == {"masterType": "n1-standard-8", "job": {"jobId": "j"}, "args": ["-v"], "region": "r"}
