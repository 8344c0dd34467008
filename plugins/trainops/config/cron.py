"""Cron expressions, checked when the file is read rather than when Airflow meets them."""

from __future__ import annotations

import re

from trainops.validation import Refused

PRESETS = ("@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")
"""Names that Airflow knows for common expressions; what has no period, such as @once, is no schedule."""

_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day of month", 1, 31), ("month", 1, 12), ("day of week", 0, 7))
_NUMBERS = re.compile(r"(?:\*|(\d+)(?:-(\d+))?)(?:/(\d+))?")
_WORDS = re.compile(r"[A-Za-z]{3}(?:-[A-Za-z]{3})?|\?|L|\d+L|L\d+|\d+#[1-5]")


def check_cron(cron: str) -> str:
    """Return `cron`: five fields, or a preset.

    :raises Refused: it is neither, or a number is out of its field's range.
    """
    if cron.startswith("@"):
        if cron not in PRESETS:
            raise Refused("no such preset", allowed=PRESETS)
        return cron
    fields = cron.split()
    if len(fields) != len(_FIELDS):
        raise Refused(f"{len(fields)} fields", next_step=_expected())
    for text, (name, least, most) in zip(fields, _FIELDS, strict=True):
        if not all(_fits(part, least, most) for part in text.split(",")):
            problem = f"the {name} {text!r} is not between {least} and {most}"
            raise Refused(problem, next_step=_expected())
    return cron


def _fits(part: str, least: int, most: int) -> bool:
    match = _NUMBERS.fullmatch(part)
    if match is None:
        return _WORDS.fullmatch(part) is not None
    first, last, step = match.groups()
    inside = all(least <= int(number) <= most for number in (first, last) if number is not None)
    return inside and step != "0"


def _expected() -> str:
    return "write five fields: minute, hour, day of month, month, day of week, such as '30 2 * * *'"
