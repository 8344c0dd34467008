"""Priority classes of the GPU queue: four names, or a number between them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

CLASSES = {"low": 25, "normal": 50, "high": 75, "urgent": 100}
"""The classes that have names. A larger number goes first, whatever else is said of two requests."""

LOWEST, HIGHEST = 0, 100


def _to_number(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value not in CLASSES:
        raise ValueError(f"a priority is one of {', '.join(CLASSES)}, or a number from {LOWEST} to {HIGHEST}")
    return CLASSES[value]


Priority = Annotated[int, Field(ge=LOWEST, le=HIGHEST), BeforeValidator(_to_number, json_schema_input_type=int | str)]
"""A priority class: its name, or a number."""


def class_name(priority: int) -> str:
    """The class in words: its name, or the number alone."""
    return next((name for name, number in CLASSES.items() if number == priority), str(priority))
