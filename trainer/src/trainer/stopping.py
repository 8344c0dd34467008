"""Requests to stop early: an object in the attempt's control folder, or SIGTERM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

from trainer.console import say
from trainer.errors import StorageError
from trainer.files import Files, join

POLL_SECONDS = 2.0


class StopRequest:
    """Whether this replica was asked to stop; all replicas then agree on it at a step boundary."""

    def __init__(self, files: Files, control: str | None) -> None:
        self._files = files
        self._control = control
        self._asked = threading.Event()
        self._closed = threading.Event()

    @property
    def asked(self) -> bool:
        """Whether somebody asked."""
        return self._asked.is_set()

    def wait(self, seconds: float) -> None:
        """Wait some time, or until somebody asks."""
        self._asked.wait(seconds)

    @contextmanager
    def listening(self, *, poll: bool) -> Generator[None, None, None]:
        """Listen to SIGTERM and, with `poll`, look into the control folder every two seconds."""
        previous = signal.signal(signal.SIGTERM, self._on_signal)
        thread = threading.Thread(target=self._poll, name="control", daemon=True)
        if poll and self._control:
            thread.start()
        try:
            yield
        finally:
            self._closed.set()
            signal.signal(signal.SIGTERM, previous)
            if thread.ident is not None:
                thread.join(timeout=30)

    def acknowledge(self, step: int) -> None:
        """Leave the marker that says: a checkpoint of `step` is safe."""
        if self._control:
            self._files.write_json(join(self._control, "preempted"), {"step": step})

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._asked.set()

    def _poll(self) -> None:
        assert self._control is not None
        troubled = False
        while not self._asked.is_set():
            try:
                if "preempt" in self._files.names(self._control):
                    self._asked.set()
                troubled = False
            except StorageError as error:
                if not troubled:
                    say(f"warning: cannot look for requests to stop, trying on: {error}")
                troubled = True
            if self._closed.wait(POLL_SECONDS):
                return
