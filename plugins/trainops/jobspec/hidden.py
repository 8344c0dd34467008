"""Values of environment variables that are secrets: sent to Vertex AI, and hidden wherever they are shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "***"
"""Stands for a value that is not shown."""

_SECRET = re.compile(r"TOKEN(?!IZ)|SECRET|PASSW|KEY|CREDENTIAL", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Return whether a variable's name says that its value is a secret: HF_TOKEN, WANDB_API_KEY, DB_PASSWORD."""
    return _SECRET.search(name) is not None


def hidden_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return variables as they may be shown."""
    return {name: HIDDEN if is_secret(name) else value for name, value in variables.items()}


def secret_values(job: Mapping[str, Any]) -> list[str]:
    """Return the values of a CustomJob's secret variables, each once."""
    found = {item["value"]: None for item in _variables(job) if is_secret(item["name"]) and item.get("value")}
    return list(found)


def hidden_job(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a CustomJob, or of a tuning job, as it may be shown; all but secret values is as it is sent."""
    shown: dict[str, Any] = _hidden(job)
    return shown


def _hidden(value: Any) -> Any:
    if isinstance(value, Mapping):
        if isinstance(value.get("name"), str) and "value" in value and is_secret(value["name"]):
            return {**value, "value": HIDDEN}
        return {key: _hidden(item) for key, item in value.items()}
    return [_hidden(item) for item in value] if isinstance(value, list | tuple) else value


def _variables(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, Mapping):
        if isinstance(value.get("name"), str) and isinstance(value.get("value"), str):
            return [dict(value)]
        return [found for item in value.values() for found in _variables(item)]
    return [found for item in value for found in _variables(item)] if isinstance(value, list | tuple) else []
