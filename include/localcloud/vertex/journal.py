"""The journal: one JSON line for every API call, every state of a job, every start and end of a replica."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from localcloud.vertex import clock


class Journal:
    """Appends to `journal.jsonl` of the state folder; may be used from any thread."""

    def __init__(self, state: Path) -> None:
        self._path = state / "journal.jsonl"
        self._lock = threading.Lock()
        self._path.touch()

    def add(self, event: str, *, time: str | None = None, **fields: Any) -> None:
        """Append an entry.

        :param time: when it happened, RFC 3339; now when left out.
        """
        line = json.dumps({"event": event, "time": time or clock.now(), **fields})
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def entries(self, *, event: str | None = None, job: str | None = None, after: int = 0) -> list[dict[str, Any]]:
        """Return the entries in order.

        :param event: only entries of this kind.
        :param job: only those of this job id.
        :param after: leave out the first so many entries.
        """
        with self._lock:
            lines = self._path.read_text(encoding="utf-8").splitlines()[after:]
        found = [json.loads(line) for line in lines]
        return [entry for entry in found if event in {None, entry["event"]} and job in {None, entry.get("job")}]
