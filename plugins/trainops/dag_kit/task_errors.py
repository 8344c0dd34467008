"""How a task's function fails: a user's mistake at once, everything else by Airflow's retries."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from airflow.sdk.exceptions import AirflowFailException

from trainops.errors import ConfigError, IntegrityError, OutputsMissing, RequestRefused

P = ParamSpec("P")
R = TypeVar("R")

FINAL = (ConfigError, IntegrityError, OutputsMissing, RequestRefused)
"""Errors that another try can only repeat."""


def final_errors_fail(function: Callable[P, R]) -> Callable[P, R]:
    """Let errors that a retry cannot help fail the task without retries, told in one line."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except FINAL as error:
            raise AirflowFailException(f"{type(error).__name__}: {error}") from None

    return guarded
