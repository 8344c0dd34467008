"""Base of the models: REST field names, snake_case as well, nothing unknown; and the scalar types of Google's JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from trainops.errors import ConfigError

_INTEGER = re.compile(r"[+-]?\d{1,19}")
_DURATION = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?s")


class Wire(BaseModel):
    """A message of a Google API, as users write it."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="forbid",
        strict=True,
        frozen=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_both_spellings(cls, data: Any) -> Any:
        """Refuse a field given in both spellings: one of the two would be dropped in silence."""
        if not isinstance(data, Mapping):
            return data
        for name, field in cls.model_fields.items():
            if field.alias != name and field.alias in data and name in data:
                raise ConfigError(f"{field.alias} and {name} are one field", key=name, next_step="keep one of them")
        return data


def _integer(value: Any) -> Any:
    return int(value) if isinstance(value, str) and _INTEGER.fullmatch(value) else value


def _sendable(value: Any) -> Any:
    """Refuse what no request and no program can hold: half a character, which JSON and YAML can write, and NUL."""
    if isinstance(value, str):
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise ValueError("holds half a character (an unpaired surrogate); write the whole one")
        if "\0" in value:
            raise ValueError("holds a NUL character, which no program can be passed")
    return value


def _filled(value: Any) -> Any:
    """Refuse an empty text: mostly a variable that was never set."""
    if value == "":
        raise ValueError("is empty; fill it in, or leave the key out")
    return value


def _version(value: Any) -> Any:
    """Read an unquoted YAML version, except where YAML already ate a zero: 2.10 arrives as 2.1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    text = str(value)
    if text.endswith(".1"):
        raise ValueError(f"write it in quotes: without them YAML reads {text} and {text}0 alike")
    return text


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _duration(value: str) -> str:
    if not _DURATION.fullmatch(value):
        raise ValueError("a duration is seconds with an s at the end, such as 3600s")
    return value


Int32 = Annotated[int, BeforeValidator(_integer), Field(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, BeforeValidator(_integer), Field(ge=-(2**63), le=2**63 - 1)]
Letters = Annotated[str, BeforeValidator(_sendable)]
Text = Annotated[Letters, BeforeValidator(_filled)]
Version = Annotated[Letters, BeforeValidator(_version), BeforeValidator(_filled)]
Strings = Annotated[list[Letters], BeforeValidator(_listed)]
Pairs = dict[Letters, Letters]


def _checked_duration(value: Any) -> Any:
    return _duration(value) if isinstance(value, str) else value


Duration = Annotated[str, BeforeValidator(_checked_duration)]


def seconds(duration: str) -> Decimal:
    """Length of a duration such as `3600s`, in seconds."""
    return Decimal(duration.removesuffix("s"))
