"""HyperparameterSpec of AI Platform's TrainingInput: what a tuning job varies, and what it is judged by.

Source: discovery document of ml.googleapis.com v1, revision 20251213.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from trainops.jobspec.wire import Int32, Strings, Text, Wire


def _number(value: Any) -> Any:
    """Read a number in quotes, and `1e-4`, which YAML takes for a text."""
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        return value


Double = Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)]


class ParameterSpec(Wire):
    """One parameter that is varied."""

    parameter_name: Text | None = Field(default=None, description="Passed on as --NAME=VALUE; required.")
    type: Literal["PARAMETER_TYPE_UNSPECIFIED", "DOUBLE", "INTEGER", "CATEGORICAL", "DISCRETE"] | None = Field(
        default=None, description="Kind of its values; required."
    )
    min_value: Double | None = Field(default=None, description="Least value of DOUBLE and INTEGER.")
    max_value: Double | None = Field(default=None, description="Largest value of DOUBLE and INTEGER.")
    categorical_values: Strings | None = Field(default=None, description="Values of CATEGORICAL.")
    discrete_values: list[Double] | None = Field(default=None, description="Values of DISCRETE, increasing.")
    scale_type: Literal["NONE", "UNIT_LINEAR_SCALE", "UNIT_LOG_SCALE", "UNIT_REVERSE_LOG_SCALE"] | None = Field(
        default=None, description="How the range is searched; not of CATEGORICAL."
    )


class HyperparameterSpec(Wire):
    """A tuning job: its parameters, metric and trials."""

    goal: Literal["GOAL_TYPE_UNSPECIFIED", "MAXIMIZE", "MINIMIZE"] | None = Field(
        default=None, description="MAXIMIZE when not given."
    )
    params: list[ParameterSpec] | None = Field(default=None, description="What is varied; required.")
    max_trials: Int32 | None = Field(default=None, description="Number of trials; 1 when not given.")
    max_parallel_trials: Int32 | None = Field(default=None, description="Trials at one time; 1 when not given.")
    max_failed_trials: Int32 | None = Field(
        default=None, description="Failed trials that end the job; 0 leaves it to the service."
    )
    hyperparameter_metric_tag: Text | None = Field(
        default=None, description="Name of the metric; training/hptuning/metric when not given."
    )
    resume_previous_job_id: Text | None = Field(default=None, description="A tuning job to go on with: refused.")
    enable_trial_early_stopping: bool | None = Field(default=None, description="Whether poor trials end early.")
    algorithm: Literal["ALGORITHM_UNSPECIFIED", "GRID_SEARCH", "RANDOM_SEARCH"] | None = Field(
        default=None, description="How values are chosen; Bayesian search when not given."
    )
