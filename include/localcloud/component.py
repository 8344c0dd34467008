"""What the supervisor knows of a component."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


def _nothing() -> None:
    return None


@dataclass(frozen=True)
class Component:
    """One process that is kept running, or (`once`) run to its end before others start."""

    name: str
    command: tuple[str, ...]
    is_healthy: Callable[[float], bool]
    """Asked with the time of its start (seconds since the epoch); may take a few seconds, never raises."""
    environment: Mapping[str, str] = field(default_factory=dict)
    port: int | None = None
    """Port of loopback that it listens on."""
    needs: tuple[str, ...] = ()
    """Components that must be healthy before it starts."""
    prepare: Callable[[], None] = _nothing
    """Run in the supervisor before each start; raises LocalCloudError."""
    stop_signal: int = signal.SIGTERM
    grace_seconds: float = 8.0
    once: bool = False
    stop_stage: int = 0
    """Components of a lower stage are stopped first."""
