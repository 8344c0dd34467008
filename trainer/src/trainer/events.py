"""TensorBoard's event files: the numbers of `metrics.jsonl`, where AIP_TENSORBOARD_LOG_DIR asks for them."""

from __future__ import annotations

import shutil
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

from trainer.console import say
from trainer.errors import StorageError
from trainer.files import Files

_LEFT_OUT = {"step", "steps", "time"}


class EventFiles:
    """Writes event files on the disk here and copies them to their folder, which may be in a bucket."""

    def __init__(self, files: Files, folder: str) -> None:
        self._files = files
        self._folder = folder
        self._temporary = ""
        self._writer: Any = None

    def begin(self, step: int) -> None:
        """Open a file that goes on after `step`; TensorBoard then hides what earlier attempts wrote after it."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            say("warning: AIP_TENSORBOARD_LOG_DIR is set, but nothing is written there: pip install tensorboard")
            return
        writer: Any = SummaryWriter
        self._temporary = tempfile.mkdtemp(prefix="trainer-events-")
        self._writer = writer(log_dir=self._temporary, purge_step=step + 1 if step else None)

    def add(self, line: dict[str, Any]) -> None:
        """Add every number of a line of metrics under its name."""
        if self._writer is None:
            return
        moment = datetime.fromisoformat(line["time"]).timestamp()
        for name, value in line.items():
            if name not in _LEFT_OUT and value is not None:
                self._writer.add_scalar(name, value, line["step"], walltime=moment)

    def write(self) -> None:
        """Copy what there is so far; a storage that fails is told of, and costs no training."""
        if self._writer is None:
            return
        self._writer.flush()
        try:
            self._files.upload_folder(Path(self._temporary), self._folder)
        except StorageError as error:
            say(f"warning: TensorBoard's events not written: {error}")

    def close(self) -> None:
        """Close the file and delete the copy here."""
        if self._writer is not None:
            self._writer.close()
            shutil.rmtree(self._temporary, ignore_errors=True)
