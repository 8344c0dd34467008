"""Priority classes of the GPU queue: four names, or a number between them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from trainops.validation import Refused

CLASSES = {"low": 25, "normal": 50, "high": 75, "urgent": 100}
"""The classes that have names. A larger number goes first, whatever else is said of two requests."""

LOWEST, HIGHEST = 0, 100


def _to_number(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value.isascii() and value.isdecimal():  # a trigger form has text only
        return int(value)
    if value not in CLASSES:
        raise Refused(f"neither a class nor a number from {LOWEST} to {HIGHEST}", allowed=CLASSES)
    return CLASSES[value]


Priority = Annotated[int, Field(ge=LOWEST, le=HIGHEST), BeforeValidator(_to_number, json_schema_input_type=str | int)]
"""A priority class: its name, or a number."""


def class_name(priority: int) -> str:
    """The class in words: its name, or the number alone."""
    return next((name for name, number in CLASSES.items() if number == priority), str(priority))
