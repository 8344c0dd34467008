"""Errors of the trainer; `exit_code` tells the scheduler whether another try helps.

TrainerError          1: another try may help
├── UserError         2: the input is wrong, another try never helps
└── StorageError      1, or 2 when the storage refuses (no bucket, no permission)
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class TrainerError(Exception):
    """Root of the tree."""

    exit_code = 1


class UserError(TrainerError):
    """The input cannot be used; the message names the file, the key, what is allowed and the next step."""

    exit_code = 2


class StorageError(TrainerError):
    """The storage answered with an error; `refused` when asking again cannot help."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.exit_code = 2 if refused else 1


def nearest(value: str, allowed: Iterable[str]) -> str:
    """Return "; did you mean 'X'?" for the allowed value most like `value`, or nothing."""
    found = get_close_matches(value.lower(), list(allowed), n=1, cutoff=0.5)
    return f"; did you mean {found[0]!r}?" if found else ""
