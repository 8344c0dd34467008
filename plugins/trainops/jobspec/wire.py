"""Base of the models: REST field names, snake_case as well, nothing unknown; and the scalar types of Google's JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from trainops.errors import ConfigError
from trainops.validation import Refused

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
    """Refuse what is no text for want of quotes, and what no request can hold: half a character, and NUL."""
    if isinstance(value, (bool, int, float)):
        raise Refused(
            "text is expected, and without quotes this is none", next_step=f"write it in quotes: {_quoted(value)}"
        )
    if isinstance(value, str):
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise Refused("holds half a character (an unpaired surrogate)", next_step="write the whole one")
        if "\0" in value:
            raise Refused("holds a NUL character, which no program can be passed", next_step="take it out")
    return value


def _quoted(value: float) -> str:
    return f'"{str(value).lower() if isinstance(value, bool) else value}"'


def _filled(value: Any) -> Any:
    """Refuse an empty text: mostly a variable that was never set."""
    if value == "":
        raise Refused("is empty", next_step="fill it in, or leave the key out")
    return value


def _version(value: Any) -> Any:
    """Read an unquoted YAML version, except where YAML already ate a zero: 2.10 arrives as 2.1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    text = str(value)
    if text.endswith(".1"):
        step = f'write it in quotes: "{text}" or "{text}0"'
        raise Refused(f"without quotes YAML reads {text} and {text}0 alike", next_step=step)
    return text


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


Int32 = Annotated[int, BeforeValidator(_integer), Field(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, BeforeValidator(_integer), Field(ge=-(2**63), le=2**63 - 1)]
Letters = Annotated[str, BeforeValidator(_sendable)]
Text = Annotated[Letters, BeforeValidator(_filled)]
Version = Annotated[Letters, BeforeValidator(_version), BeforeValidator(_filled)]
Strings = Annotated[list[Letters], BeforeValidator(_listed)]
Pairs = dict[Letters, Letters]


def _checked_duration(value: Any) -> Any:
    if isinstance(value, str) and _DURATION.fullmatch(value):
        return value
    seconds_given = str(value).removesuffix("s") if not isinstance(value, bool) else ""
    step = f"write {seconds_given}s" if _DURATION.fullmatch(f"{seconds_given}s") else "write it like 3600s"
    raise Refused("a duration is a text of seconds with an s at the end", next_step=step)


Duration = Annotated[str, BeforeValidator(_checked_duration)]


def seconds(duration: str) -> Decimal:
    """Length of a duration such as `3600s`, in seconds."""
    return Decimal(duration.removesuffix("s"))
