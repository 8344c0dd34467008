r"""Labels that Vertex takes.

Length of keys and values, and that international characters are allowed: reference of CustomJob.labels. How a key
begins and which characters that means is stated by other Google APIs, such as Secret Manager's
(`[\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]{0,62}`); those stop at 63 characters, where Vertex AI says 64.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from localcloud.vertex.problems import Problem

_LABELS = 64
_CHARACTERS = 64
_LETTERS = ("Ll", "Lo")
_RULE = (
    "Keys start with a lowercase letter; keys and values contain only lowercase letters, digits, underscores and "
    f"dashes, and have at most {_CHARACTERS} characters. International characters are allowed."
)


def label_problems(labels: dict[str, str]) -> Iterator[Problem]:
    """Yield what is wrong with the labels of a job."""
    if len(labels) > _LABELS:
        yield ("labels", f"At most {_LABELS} labels are allowed, found {len(labels)}.")
    for key, value in labels.items():
        if not key or unicodedata.category(key[0]) not in _LETTERS or not _fits(key):
            yield ("labels", f'Label key "{key}" is invalid. {_RULE}')
        if not _fits(value):
            yield ("labels", f'Label value "{value}" of key "{key}" is invalid. {_RULE}')


def _fits(text: str) -> bool:
    return len(text) <= _CHARACTERS and all(_is_allowed(letter) for letter in text)


def _is_allowed(letter: str) -> bool:
    category = unicodedata.category(letter)
    return letter in "_-" or category in _LETTERS or category.startswith("N")
