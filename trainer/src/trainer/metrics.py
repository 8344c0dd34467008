"""`metrics.jsonl`: one line for every logged step and evaluation, rewritten whole every few seconds."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from trainer.console import say
from trainer.errors import StorageError
from trainer.events import EventFiles
from trainer.files import Files

WRITE_SECONDS = 5.0


class MetricsLog:
    """Collects lines and writes them in a thread of its own, so that a slow storage does not slow the training."""

    def __init__(self, files: Files, uri: str, events: EventFiles | None = None) -> None:
        self._files = files
        self._uri = uri
        self._events = events
        self._writing = threading.Lock()
        self._lines: list[dict[str, Any]] = []
        self._changed = threading.Event()
        self._closed = threading.Event()

    def restore(self, step: int) -> None:
        """Go on from what is stored; lines after `step` are dropped, since they will be written again."""
        stored = (self._files.read(self._uri) or b"").split(b"\n")
        lines = [json.loads(line) for line in stored if line.strip()]
        self._lines = [line for line in lines if line["step"] <= step]
        if self._events:
            self._events.begin(step)

    def add(self, line: dict[str, Any]) -> None:
        """Add a line, with the time; an evaluation that is done again replaces the one before."""
        if self._lines and (self._lines[-1]["step"], *self._lines[-1]) == (line["step"], *line, "time"):
            self._lines.pop()
        self._lines.append({**line, "time": datetime.now(UTC).isoformat(timespec="milliseconds")})
        if self._events:
            self._events.add(self._lines[-1])
        self._changed.set()

    @contextmanager
    def writing(self) -> Generator[None, None, None]:
        """Write every few seconds, and once more at the end."""
        thread = threading.Thread(target=self._write_often, name="metrics", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._closed.set()
            thread.join(timeout=30)
            self.write()
            if self._events:
                self._events.close()

    def write(self) -> None:
        """Write all lines now."""
        # One at a time, so that an older content never overwrites a newer one.
        with self._writing:
            lines = [json.dumps(line) + "\n" for line in list(self._lines)]
            self._files.write(self._uri, "".join(lines).encode())
            if self._events:
                self._events.write()

    def _write_often(self) -> None:
        while not self._closed.wait(WRITE_SECONDS):
            if self._changed.is_set():
                self._changed.clear()
                try:
                    self.write()
                except StorageError as error:
                    self._changed.set()
                    say(f"warning: metrics not written, trying on: {error}")
