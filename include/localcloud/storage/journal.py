"""The journal: one JSON line per request, in memory for `GET /journal` and on disk for people."""

from __future__ import annotations

import json
from collections import deque
from datetime import UTC, datetime
from pathlib import Path

LINES_IN_MEMORY = 20_000
BYTES_ON_DISK = 32 * 1024 * 1024


class Journal:
    """Appends entries, numbered from 1, to a file that is turned over at 32 MiB (one older file is kept)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries: deque[dict[str, object]] = deque(maxlen=LINES_IN_MEMORY)
        self._number = 0
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def add(self, **entry: object) -> None:
        """Add one entry; its number and time are set here."""
        self._number += 1
        line = {"number": self._number, "time": datetime.now(UTC).isoformat(), **entry}
        self._entries.append(line)
        if self._file.tell() > BYTES_ON_DISK:
            self._turn_over()
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def entries(self, after: int = 0) -> list[dict[str, object]]:
        """Return the entries in memory whose number is greater than `after`."""
        return [entry for entry in self._entries if int(str(entry["number"])) > after]

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _turn_over(self) -> None:
        self._file.close()
        self._path.replace(self._path.with_suffix(".1.jsonl"))
        self._file = self._path.open("a", encoding="utf-8", buffering=1)
