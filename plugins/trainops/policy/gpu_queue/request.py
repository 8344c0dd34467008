"""What the queue knows of a job key: what it asks for, how far it is, and what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Gpus = Mapping[str, int]
"""Accelerators by pool name, such as {"NVIDIA_L4/us-central1/spot": 8}."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lease:
    """GPUs that a job key holds."""

    gpus: Gpus
    since: float
    """Moment of the admission."""
    probe: bool = False
    """True when the job had not run long enough to report its progress when it was admitted."""
    backfill: bool = False
    """True when it was admitted past a request of a better rank that did not fit: it may be asked to leave any time."""
    leaving: bool = False
    """True once it was asked to save its state and leave."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A job key that wants GPUs, or has them."""

    job_key: str
    candidates: tuple[Gpus, ...]
    """What it can run on, the first choice first; of each it needs all GPUs at once, or none."""
    arrived: float
    """Moment at which it asked first."""
    priority: int = 50
    """Priority class: a larger one goes first, whatever else is said here."""
    ran: float = 0.0
    """Seconds that its jobs have run so far, over all attempts."""
    remaining: float | None = None
    """Seconds that are left by its own report; None before there is one."""
    estimate: float | None = None
    """Seconds that the whole takes, as its owner or earlier runs say; only for telling when others may start."""
    restart: float = 0.0
    """Seconds that its next start costs, beyond what is left: steps since the last checkpoint, loading."""
    preemptions: int = 0
    """How often it was asked to leave before."""
    preemptible: bool = True
    """False for a job that cannot save its state on request."""
    held: str = ""
    """Who keeps it from starting, and why; empty when nobody does."""
    evicted: str = ""
    """Who wants it to leave, and why; empty when nobody does."""
    lease: Lease | None = None
    """What it holds; None while it waits."""

    @property
    def running(self) -> bool:
        """True while it holds GPUs and was not asked to leave."""
        return self.lease is not None and not self.lease.leaving

    @property
    def gpus(self) -> int:
        """Number of GPUs that it holds, else of its first choice."""
        return sum((self.candidates[0] if self.lease is None else self.lease.gpus).values())

    def left(self, default: float) -> float:
        """Seconds that it probably needs still, by the best that is known.

        :param default: what a job takes of which nothing is known.
        """
        if self.remaining is not None:
            return self.remaining + self.restart
        # One that overran what was said of it is as likely to need as long again.
        return max((self.estimate or default) - self.ran, self.ran) + self.restart
