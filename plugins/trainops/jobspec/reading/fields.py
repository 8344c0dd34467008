"""The fields in a text of YAML or JSON; JSON may have comments and trailing commas."""

from __future__ import annotations

from typing import Any

from trainops.errors import ConfigError
from trainops.jobspec.reading.commented_json import looks_like_json, parse_commented_json
from trainops.validation import parse_yaml


def parse_fields(text: str, source: str) -> Any:
    """Return what YAML or JSON text holds.

    :raises ConfigError: neither, or a key stands twice.
    """
    if not looks_like_json(text):
        return parse_yaml(text, source=source)
    try:
        return parse_commented_json(text, source)
    except ConfigError as error:
        try:
            return parse_yaml(text, source=source)  # {scaleTier: BASIC} is YAML
        except ConfigError:
            raise error from None
