"""Settings of one stand-in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """What the command line gave."""

    state: Path
    """Folder of everything that is kept; one server at a time."""
    storage_endpoint: str
    """URL of the stand-in for Cloud Storage, without a slash at the end."""
    python: Path
    """Interpreter that replicas run with; its pip installs their packages."""
    project_number: str = "100000000001"
    """Number that names of jobs show for every project."""
    grace: float = 5.0
    """Seconds between SIGTERM and SIGKILL."""
    quota_file: Path | None = None
    """JSON file of quotas; see quota.py."""
