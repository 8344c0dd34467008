"""What every config model of Trainops is: strict, frozen, and closed to keys it does not know."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict


class Config(BaseModel):
    """Base of the config models: a number in quotes is no number, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def _to_date(value: Any) -> Any:
    if isinstance(value, datetime) or not isinstance(value, str | date | None):
        raise ValueError("a date such as 2026-11-29 is expected")
    if not isinstance(value, str):
        return value
    try:
        return date.fromisoformat(value) if len(value) == len("2026-11-29") else _to_date(0)
    except ValueError:
        raise ValueError("a date such as 2026-11-29 is expected") from None


Day = Annotated[date, BeforeValidator(_to_date, json_schema_input_type=date)]
"""A calendar day: `YYYY-MM-DD`, quoted or not; a moment with a time of day is refused."""
