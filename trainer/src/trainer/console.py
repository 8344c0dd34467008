"""What a person reads while the trainer works."""

from __future__ import annotations


def say(text: str) -> None:
    """Print one line at once, so that it shows in the log while the job runs."""
    print(text, flush=True)


def duration(seconds: float) -> str:
    """Write a number of seconds as h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
