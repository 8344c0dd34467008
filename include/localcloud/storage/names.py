"""Which requests the server behind may see: it keeps objects as files, and `..` in a name is the folder above to it."""

from __future__ import annotations

import json
import re
from urllib.parse import parse_qs, unquote

_COMPOSE = re.compile(r"^/storage/v1/b/[^/]+/o/[^/]+/compose$")
_WRITABLE = ("/storage/v1/", "/upload/storage/v1/", "/resumable/upload/storage/v1/", "/upload/resumable/")
_READING = frozenset({"GET", "HEAD", "OPTIONS"})


def is_compose(raw_path: str) -> bool:
    """Return whether the request's body names further objects."""
    return _COMPOSE.match(raw_path) is not None


def names_of_sources(body: bytes) -> list[str]:
    """Return the names in the body of a compose; none where it is not what it should be."""
    try:
        value = json.loads(body or b"{}")
        return [str(source["name"]) for source in value["sourceObjects"]]
    except (ValueError, KeyError, TypeError):
        return []


def refusal_of(method: str, raw_path: str, query: str, names: list[str]) -> str | None:
    """Return why a request is not passed on, None when it is.

    :param names: of objects that its body names.
    """
    if method not in _READING and not raw_path.startswith(_WRITABLE):
        return f"{method} {raw_path}: the stand-in takes changes by the JSON API only, and no batches of them"
    in_query = [name for key, values in parse_qs(query).items() if key.lower() == "name" for name in values]
    for name in (unquote(raw_path), *in_query, *names):
        if "\0" in name or any(part in {".", ".."} for part in name.split("/")):
            return f"{name!r} leads out of its folder: the stand-in keeps objects as files, under their names"
    return None
