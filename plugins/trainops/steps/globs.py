"""Globs over relative paths: `**` spans folders, `*`, `?` and `[...]` stay inside one name."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase


def matches(path: str, globs: Iterable[str]) -> bool:
    """Return whether the file `path`, relative and with forward slashes, matches any of the globs."""
    names = path.split("/")
    return any(_matches(names, glob.strip("/").split("/")) for glob in globs)


def covers(folder: str, globs: Iterable[str]) -> bool:
    """Return whether any of the globs, such as `folder/**`, matches all that `folder` holds."""
    names = folder.split("/")
    parts = (glob.strip("/").split("/") for glob in globs)
    return any(glob[-1] == "**" and _matches(names, glob[:-1]) for glob in parts)


def _matches(names: list[str], glob: list[str]) -> bool:
    if not glob:
        return not names
    if glob == ["**"]:
        return bool(names)
    if glob[0] == "**":
        return any(_matches(names[skipped:], glob[1:]) for skipped in range(len(names)))
    return bool(names) and fnmatchcase(names[0], glob[0]) and _matches(names[1:], glob[1:])
