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
