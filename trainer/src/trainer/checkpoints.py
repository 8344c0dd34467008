"""Checkpoints: everything that a run needs to go on as if it had never stopped, in one format for any cluster shape.

`step-N/replica-R-of-S.pt` holds the pieces of one replica, `step-N/complete.json` says which files there are, what
pieces are in them, and how far the run was. It is written last: a checkpoint without it does not exist. A folder on
object storage cannot be renamed, but one object is there or not.
"""

from __future__ import annotations

import io
import json
import math
import pickle
import re
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from trainer.console import say
from trainer.errors import TrainerError, UserError
from trainer.failures import out_of_memory
from trainer.files import Files, join
from trainer.layout import Layout
from trainer.old_checkpoint import OldCheckpoint
from trainer.pieces import KINDS, Piece, Range, copy_overlaps, overlap, uncovered

KEPT = 2
_COMPLETE = re.compile(r"step-(\d{8})/complete\.json")
_PART = re.compile(r"step-(\d{8})/.+")
_OLD = re.compile(r"step-(\d{8})\.pt")

Record = dict[str, Any]
"""What `complete.json` holds."""


class Gone(TrainerError):
    """A part of a checkpoint is not there, or not any more."""


_CORRUPT = (
    Gone,
    zipfile.BadZipFile,
    pickle.UnpicklingError,
    RuntimeError,
    EOFError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
)
"""What reading a checkpoint raises that is not whole."""


class Checkpoints:
    """The folder of a run's checkpoints; the two newest are kept.

    :param layout: the model's parameters.
    """

    def __init__(self, files: Files, folder: str, layout: Layout) -> None:
        self._files = files
        self._folder = folder
        self._layout = layout

    def write(self, step: int, name: str, pieces: Iterable[Piece]) -> None:
        """Write the file of one replica."""
        buffer = io.BytesIO()
        torch.save([(*piece.range, piece.values) for piece in pieces], buffer)
        self._files.write(self._uri(step, name), buffer.getvalue())

    def commit(self, step: int, record: Record) -> None:
        """Make a checkpoint of the files of `step`; delete all but the newest ones, and what was never completed."""
        self._files.write_json(self._uri(step, "complete.json"), record)
        names = self._files.below(self._folder)
        kept = _whole(names)[-KEPT:]
        for old in sorted(_steps(names, _PART, _OLD)):
            if old < step and old not in kept:
                self.delete(old)

    def delete(self, step: int) -> None:
        """Delete a checkpoint."""
        # First what makes a checkpoint of the rest.
        self._files.delete(self._uri(step, "complete.json"))
        self._files.delete_folder(join(self._folder, _name(step)))
        self._files.delete(join(self._folder, f"{_name(step)}.pt"))

    def steps(self) -> list[int]:
        """Return the steps of which there are checkpoints, the oldest first."""
        return _whole(self._files.below(self._folder))

    def record(self, step: int) -> tuple[Record, str | None]:
        """Return what the checkpoint of `step` says of itself, and what is wrong with that; None when nothing is."""
        try:
            data = self._files.read(self._uri(step, "complete.json"))
            record = self._old(step).record() if data is None else Record(json.loads(data))
            whole = [(kind, name, 0, math.prod(shape)) for name, shape in record["shapes"].items() for kind in KINDS]
            lacking = uncovered(whole, (piece for item in record["files"] for piece in ranges(item)))
        except _CORRUPT as error:
            return {}, _told(error)
        return record, lacking and "no file has the {} of {}, values {} to {}".format(*lacking)

    def check_model(self, record: Record) -> None:
        """Compare the parameters of a checkpoint with those of the model.

        :raises UserError: when it is of another model.
        """
        theirs = {name: tuple(shape) for name, shape in record["shapes"].items()}
        ours = self._layout.shapes
        for name in (name for name in (*ours, *theirs) if theirs.get(name) != ours.get(name)):
            raise UserError(
                f"the checkpoint is of another model than trainer.model: {name} is {_shape(theirs.get(name))} there "
                f"and {_shape(ours.get(name))} here. Use another job-dir, or the settings that the run began with"
            )

    def problem(self, step: int, record: Record, share: slice) -> str | None:
        """Say what is wrong with some of the files of a checkpoint; None when nothing is."""
        for item in record["files"][share]:
            try:
                found = [piece.range for piece in self._read(step, item["name"], check=True)]
            except _CORRUPT as error:
                return f"{item['name']}: {_told(error)}"
            if found != ranges(item):
                return f"{item['name']}: it holds other pieces than complete.json says"
        return None

    def load(self, step: int, record: Record, held: list[Piece]) -> None:
        """Copy what a checkpoint has of the pieces that are held; one file is in memory at a time."""
        for item in record["files"]:
            if any(overlap(mine.range, theirs) for mine in held for theirs in ranges(item)):
                copy_overlaps(self._read(step, item["name"]), held)

    def say_corrupt(self, step: int, problem: str) -> None:
        """Tell of a checkpoint that cannot be used, and delete it."""
        say(f"warning: {join(self._folder, _name(step))} is corrupt ({problem}): deleted, taking the one before")
        self.delete(step)

    def _read(self, step: int, name: str, *, check: bool = False) -> list[Piece]:
        if _OLD.fullmatch(name):
            return self._old(step).pieces()
        data = self._files.read(self._uri(step, name))
        if data is None:
            raise Gone(f"{self._uri(step, name)}: no such object, though the checkpoint is complete")
        if check:
            check_archive(data)
        return [Piece(*fields) for fields in torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)]

    def _old(self, step: int) -> OldCheckpoint:
        name = f"{_name(step)}.pt"
        data = self._files.read(join(self._folder, name))
        if data is None:
            raise Gone(f"{self._uri(step, 'complete.json')}: gone since it was found")
        check_archive(data)
        return OldCheckpoint(name, data, self._layout)

    def _uri(self, step: int, name: str) -> str:
        return join(self._folder, _name(step), name)


def ranges(item: Mapping[str, Any]) -> list[Range]:
    """Return what pieces a file holds, from its entry in `complete.json`."""
    return [(str(kind), str(name), int(start), int(end)) for kind, name, start, end in item["pieces"]]


def check_archive(data: bytes) -> None:
    """Raise BadZipFile when a bit is wrong: torch's files are zip archives, and their CRCs tell."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if damaged := archive.testzip():
            raise zipfile.BadZipFile(f"wrong CRC of {damaged}")


def _told(error: BaseException) -> str:
    if out_of_memory(error):
        raise error  # the checkpoint is not to blame, and must not be deleted
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no more is known'}"


def _name(step: int) -> str:
    return f"step-{step:08d}"


def _steps(names: Iterable[str], *patterns: re.Pattern[str]) -> set[int]:
    matches = (pattern.fullmatch(name) for name in names for pattern in patterns)
    return {int(match[1]) for match in matches if match}


def _whole(names: Iterable[str]) -> list[int]:
    return sorted(_steps(names, _COMPLETE, _OLD))


def _shape(shape: tuple[int, ...] | None) -> str:
    return "not" if shape is None else "x".join(map(str, shape)) or "a single value"
