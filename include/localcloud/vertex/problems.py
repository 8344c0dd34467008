"""What is wrong with a job: a field and a message."""

from __future__ import annotations

Problem = tuple[str, str]
"""Field path in snake_case, message."""

REQUIRED = "Required field is not set."
