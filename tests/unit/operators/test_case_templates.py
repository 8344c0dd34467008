"""Reports of users whose templates reached the job as they were written."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from airflow.sdk import DAG

from trainops.operators.mlengine import MLEngineStartTrainingJobOperator
from trainops.sensors.training_job import TrainingJobSensor

CONTEXT: Any = {"ds": "2026-11-29", "run_id": "r"}
MASTER = {
    "imageUri": "example/image:{{ ds }}",
    "containerCommand": ["python", "-c"],
    "containerArgs": ["--date={{ ds }}", "{{ run_id }}"],
    "acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": "{{ 1 + 1 }}"},
}


def rendered(operator: Any) -> Any:
    """The operator after Airflow has rendered its templates."""
    with DAG("templates", schedule=None) as dag:
        dag.add_task(operator)
    operator.render_template_fields(CONTEXT)
    return operator


@pytest.mark.case("C066")
@pytest.mark.case("C067")
@pytest.mark.parametrize("field", MLEngineStartTrainingJobOperator.template_fields)
def test_every_templated_argument_of_the_operator_is_rendered(field: str) -> None:
    given: dict[str, Any] = {field: "x-{{ ds }}"}
    operator = rendered(MLEngineStartTrainingJobOperator(task_id="train", **given))
    assert getattr(operator, field) == "x-2026-11-29"


@pytest.mark.case("C066")
def test_the_arguments_that_are_not_templated_hold_no_text() -> None:
    signature = inspect.signature(MLEngineStartTrainingJobOperator.__init__).parameters
    plain = set(signature) - set(MLEngineStartTrainingJobOperator.template_fields) - {"self", "kwargs"}
    assert plain == {
        "wait",
        "priority",
        "preemptible",
        "deferrable",
        "poll_interval",
        "max_unknown_time",
        "cancel_on_kill",
        "max_spot_losses",
        "max_usd",
    }


@pytest.mark.case("C068")
def test_templates_are_rendered_within_the_dicts_and_lists_of_a_job() -> None:
    given: dict[str, Any] = {"master_config": MASTER, "training_args": ["--date", "{{ ds }}"]}
    operator = rendered(MLEngineStartTrainingJobOperator(task_id="train", **given))
    config = vars(operator)["master_config"]
    assert config["imageUri"] == "example/image:2026-11-29"
    assert config["containerArgs"] == ["--date=2026-11-29", "r"]
    assert config["acceleratorConfig"]["count"] == "2"
    assert vars(operator)["training_args"] == ["--date", "2026-11-29"]


@pytest.mark.case("C067")
@pytest.mark.parametrize("field", [name for name in TrainingJobSensor.template_fields if name != "run"])
def test_every_templated_argument_of_the_sensor_is_rendered(field: str) -> None:
    given: dict[str, Any] = {field: "x-{{ ds }}"}
    sensor = rendered(TrainingJobSensor(task_id="wait", run="gs://my-bucket/{{ ds }}.json", **given))
    assert (sensor.run, getattr(sensor, field)) == ("gs://my-bucket/2026-11-29.json", "x-2026-11-29")
