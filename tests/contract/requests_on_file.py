"""Every request on file: golden ones of jobs made up for a rule, and of real jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "unit" / "jobspec" / "golden"
_FILES = sorted(path for path in GOLDEN.rglob("*.json"))


def request(path: Path) -> dict[str, Any]:
    """Return what the file holds."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


TUNING_JOBS = [path for path in _FILES if "studySpec" in request(path)]
CUSTOM_JOBS = [path for path in _FILES if path not in TUNING_JOBS]
