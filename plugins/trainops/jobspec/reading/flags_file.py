"""The file of `gcloud --flags-file`: YAML whose keys are flags, or a list of such mappings.

Source: `gcloud topic flags-file`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainops.errors import ConfigError

_DELIMITERS = ",:;|~@#%&"


def flag_words(data: Any, file: str, source: str) -> list[str]:
    """Return the words that the flags of the file are on a command line; a file of flags in it is one of them.

    :raises ConfigError: no mapping of flags, or a value that no flag can have.
    """
    key = f"--flags-file {file}"
    words: list[str] = []
    for part in data if isinstance(data, list) else [data]:
        if not isinstance(part, Mapping):
            step = "write flags with their values, such as --region: us-central1"
            raise ConfigError("a mapping of flags is expected", source=source, key=key, next_step=step)
        for name, value in part.items():
            if not str(name).startswith("-"):
                step = f"write --{name}"
                raise ConfigError("no flag", source=source, key=key, value=name, next_step=step)
            words += _words(str(name), value)
    return words


def _words(name: str, value: Any) -> list[str]:
    if value is None or value is True:
        return [name]
    if value is False:
        return [f"--no-{name.removeprefix('--')}"]
    if name == "--flags-file" and isinstance(value, list):
        return [f"{name}={inner}" for inner in value]
    if isinstance(value, Mapping):
        return [f"{name}={_joined([f'{key}={inner}' for key, inner in value.items()])}"]
    return [f"{name}={_joined([str(inner) for inner in value]) if isinstance(value, list) else value}"]


def _joined(parts: list[str]) -> str:
    """Join with a delimiter that stands in none of the parts."""
    delimiter = next((letter for letter in _DELIMITERS if not any(letter in part for part in parts)), "\x1f")
    text = delimiter.join(parts)
    return text if delimiter == "," else f"^{delimiter}^{text}"
