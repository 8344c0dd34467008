"""Values that a text does not tell: a variable that is set elsewhere, or what a program computes when it runs.

Both stay in the text behind a mark. Where only a name or an argument depends on what is computed anew at each run, it
stays as it is written, with a note; anything else is refused, all at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from trainops.errors import ConfigError
from trainops.jobspec.notes import Note

UNSET = "\ue000"
"""Stands before a variable whose value the text does not tell."""

COMPUTED = "\ue001"
"""Stands before what is computed when the program runs, such as `$(date)`."""

_FREE = {
    "args", "jobDir", "packageUris", "imageUri", "labels", "containerArgs", "containerCommand", "serviceAccount",
}  # fmt: skip
"""Fields whose value may be completed by hand later: nothing else of the translation depends on it."""


TOLD_LATER = "not all of it is told; it stands as it is written, for you to fill in"
"""What a note says of such a value."""

_NOT_SENT = {"project", "parent"}


def is_untold(value: str) -> bool:
    """Whether the value has a part that the text does not tell."""
    return UNSET in value or COMPUTED in value


def written(value: str) -> str:
    """Return the value as it was written, without marks."""
    return value.replace(UNSET, "").replace(COMPUTED, "")


def settled(body: Mapping[str, Any], source: str) -> tuple[dict[str, Any], list[Note]]:
    """Return the body of a job without marks, and notes about what is left for the user to fill in.

    :raises ConfigError: a value that the translation needs is not told; all of them are named.
    """
    missing: list[str] = []
    notes: list[Note] = []
    for path, value in _texts(body, ()):
        if not is_untold(value) or path[0] in _NOT_SENT:
            continue
        name = ".".join(part for part in path if part != "trainingInput")
        if path == ("jobId",):
            notes.append(Note("job.jobId", written(value), "changed", "displayName", TOLD_LATER))
        elif UNSET in value or not _FREE & set(path):
            missing.append(value)
        else:
            notes.append(Note(name, written(value), "changed", "", TOLD_LATER))
    if missing:
        raise untold_error(missing, source)
    return _cleaned(body), notes


PLACEHOLDER = re.compile(r"(?<![$\w{])\{([A-Za-z_]\w*)\}(?!\})")
"""A name of Python in braces, as IPython and `format` fill it in."""


def filled_in(text: str, known: Mapping[str, str]) -> str:
    """Put values in place of names in braces; one that is not known keeps a mark."""
    return PLACEHOLDER.sub(lambda found: known.get(found[1], f"{UNSET}{found.group()}"), text)


def untold_error(values: list[str], source: str, key: str = "") -> ConfigError:
    """Return the error that refuses values that are not told."""
    told = ", ".join(dict.fromkeys(written(value) for value in values))
    return ConfigError(
        f"the value of a variable is not told: {told}",
        source=source,
        key=key,
        next_step="put it in place, or set it in the lines before",
    )


def _texts(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(inner, (*path, _camel(str(name))))
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            yield from _texts(inner, (*path, str(index)))
    elif isinstance(value, str):
        yield path, value


def _cleaned(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _cleaned(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_cleaned(inner) for inner in value]
    return written(value) if isinstance(value, str) else value


def _camel(name: str) -> str:
    head, *rest = written(name).split("_")
    return head + "".join(part.capitalize() for part in rest)
