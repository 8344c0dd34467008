"""Pairs of a prompt and the response that a model is to learn: a line of JSON each."""

from __future__ import annotations

import json
from typing import Any

from trainops.errors import ConfigError

EXAMPLE = '{"prompt": "...", "response": "..."}'
"""How a pair is written."""


def pair_line(prompt: str, response: str) -> str:
    """Return a pair as the trainer reads it."""
    return json.dumps({"prompt": prompt, "response": response}, ensure_ascii=False)


def read_pair(value: Any, where: str, prompt_key: str = "prompt", response_key: str = "response") -> str:
    """Return what a row holds as `pair_line` writes it; other keys than the two are left out.

    :param where: file and line, for errors.
    :raises ConfigError: it is no pair.
    """
    pair = value if isinstance(value, dict) else {}
    prompt, response = pair.get(prompt_key), pair.get(response_key)
    if isinstance(prompt, str) and isinstance(response, str) and response:
        return pair_line(prompt, response)
    key, wrong = (response_key, response) if isinstance(prompt, str) else (prompt_key, prompt)
    raise ConfigError(
        f"every line of pairs is an object with `{prompt_key}` and `{response_key}`, both strings, and the response "
        "not empty",
        source=where,
        key=key,
        value=wrong if isinstance(value, dict) else value,
        next_step=f"write it like {EXAMPLE}",
    )
