"""What a training wrote about itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def result(folder: Path) -> dict[str, Any]:
    """The `result.json` of a job's folder."""
    data: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return data
