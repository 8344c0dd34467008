"""JSON as people keep it: with comments (//, # and /* */) and commas before a closing bracket.

JSON5 knows no #, and more than is wanted here; what is taken out leaves spaces, so that errors name the right column.
"""

from __future__ import annotations

import re
from typing import Any

from trainops.validation import parse_json

_STRING = r'"(?:\\.|[^"\\])*"'
_COMMENT = re.compile(rf"(?P<kept>{_STRING})|//[^\n]*|#[^\n]*|/\*.*?\*/", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"(?P<kept>{_STRING}|[{{\[,]\s*,)|,(?=\s*[}}\]])", re.DOTALL)
"""A comma after a value and before a closing bracket; one that follows no value stays, and is an error."""
_NOT_NEWLINE = re.compile(r"[^\n]")


def looks_like_json(text: str) -> bool:
    """Whether the text begins as a JSON object or array, comments aside."""
    return _blanked(_COMMENT, text).lstrip().startswith(("{", "["))


def parse_commented_json(text: str, source: str) -> Any:
    """Return what the text holds.

    :raises ConfigError: not JSON even so (with line and column), or a key twice.
    """
    return parse_json(_blanked(_TRAILING_COMMA, _blanked(_COMMENT, text)), source=source)


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda found: found["kept"] or _NOT_NEWLINE.sub(" ", found.group()), text)
