"""Checkpoints: everything that a run needs to go on as if it had never stopped."""

from __future__ import annotations

import io
import pickle
import re
import zipfile
from typing import Any

import torch

from trainer.console import say
from trainer.errors import TrainerError
from trainer.failures import out_of_memory
from trainer.files import Files, join

KEPT = 2
_NAME = re.compile(r"step-(\d{8})\.pt")


class Checkpoints:
    """The folder of a run's checkpoints; the two newest are kept."""

    def __init__(self, files: Files, folder: str) -> None:
        self._files = files
        self._folder = folder

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Write the state of `step`, then delete all but the newest checkpoints."""
        buffer = io.BytesIO()
        torch.save(state, buffer)
        self._files.write(self._uri(step), buffer.getvalue())
        for old in self._steps()[:-KEPT]:
            self._files.delete(self._uri(old))

    def newest_sound(self) -> int | None:
        """Find the newest checkpoint that is whole; newer ones that are corrupt are told of and deleted."""
        for step in reversed(self._steps()):
            problem = _problem(self._files.read(self._uri(step)) or b"")
            if problem is None:
                return step
            say(f"warning: {self._uri(step)} is corrupt ({problem}): deleted, taking the one before")
            self._files.delete(self._uri(step))
        return None

    def load(self, step: int) -> dict[str, Any]:
        """Read the state of `step`."""
        data = self._files.read(self._uri(step))
        if data is None:
            raise TrainerError(f"{self._uri(step)}: gone since it was found; another job writes into this folder")
        state: dict[str, Any] = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        return state

    def _uri(self, step: int) -> str:
        return join(self._folder, f"step-{step:08d}.pt")

    def _steps(self) -> list[int]:
        matches = (_NAME.fullmatch(name) for name in self._files.names(self._folder))
        return sorted(int(match[1]) for match in matches if match)


def _problem(data: bytes) -> str | None:
    """Say what is wrong with a checkpoint. torch's files are zip archives, and their CRCs tell of every flipped bit."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            damaged = archive.testzip()
        if damaged:
            return f"wrong CRC of {damaged}"
        torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except (zipfile.BadZipFile, pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        if out_of_memory(error):
            raise  # the checkpoint is not to blame, and must not be deleted
        return str(error).splitlines()[0]
    return None
