"""docker-compose.yaml as Docker Compose reads it: anchors merged, variables filled in."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = re.compile(r"\$(?:(?P<escaped>\$)|\{(?P<name>\w+)(?::(?P<mark>[-?])(?P<rest>[^}]*))?\})")

Interpolate = Callable[[Any, Mapping[str, str]], Any]


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def compose_text() -> str:
    """The file as it stands."""
    return (ROOT / "docker-compose.yaml").read_text()


@pytest.fixture(scope="session")
def compose(compose_text: str) -> dict[str, Any]:
    """The file parsed, variables as they are written."""
    parsed: dict[str, Any] = yaml.safe_load(compose_text)
    return parsed


@pytest.fixture(scope="session")
def interpolate() -> Interpolate:
    """Fill `${NAME:-default}`, `${NAME:?message}` and `$$` in, at any depth; a missing variable is a KeyError."""
    return fill_in


def fill_in(value: Any, variables: Mapping[str, str]) -> Any:
    """Fill variables in within strings at any depth."""
    if isinstance(value, dict):
        return {key: fill_in(one, variables) for key, one in value.items()}
    if isinstance(value, list):
        return [fill_in(one, variables) for one in value]
    if isinstance(value, str):
        return VARIABLE.sub(lambda match: _replacement(match, variables), value)
    return value


def _replacement(match: re.Match[str], variables: Mapping[str, str]) -> str:
    if match["escaped"]:
        return "$"
    if variables.get(match["name"]):
        return variables[match["name"]]
    if match["mark"] == "-":
        return match["rest"]
    raise KeyError(f"{match['name']}: {match['rest']}")
