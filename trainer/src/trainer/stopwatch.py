"""Where the time of a step goes."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch


@dataclass
class Spent:
    """Seconds since the last line of metrics, on this replica."""

    steps: int = 0
    """Steps taken."""
    step: float = 0.0
    """Whole steps, without evaluations and checkpoints."""
    data: float = 0.0
    """Reading windows and moving them to the device."""
    compute: float = 0.0
    """Forward and backward."""
    communication: float = 0.0
    """Waiting for other replicas with nothing left to compute."""
    checkpoint: float = 0.0
    """Saving checkpoints."""

    @contextmanager
    def on(self, part: str) -> Generator[None, None, None]:
        """Add the time that something takes to one of the parts."""
        with stopwatch() as watch:
            yield
        setattr(self, part, getattr(self, part) + watch.seconds)


@dataclass
class Watch:
    """A time that is being measured."""

    seconds: float = 0.0
    """What it took; 0 until it is over."""


@contextmanager
def stopwatch() -> Generator[Watch, None, None]:
    """Measure how long something takes."""
    watch, started = Watch(), time.monotonic()
    try:
        yield watch
    finally:
        watch.seconds = time.monotonic() - started


class Exchange:
    """Measures how long a backward pass waits for the other replicas' gradients after computing its own.

    Gradients travel while others are computed; only what is left when the last one is there costs time. That one is of
    the input embedding, where every backward pass ends.
    """

    def __init__(self, model: Any, device: torch.device, replicas: int) -> None:
        self._device = device
        self._ready: Any = None
        self._done: Any = None
        weight = model.get_input_embeddings().weight
        if replicas > 1 and weight.requires_grad:
            weight.register_post_accumulate_grad_hook(self._on_last_gradient)

    def finished(self) -> None:
        """Say that the backward pass is over."""
        self._done = self._now()

    def seconds(self) -> float:
        """Return the seconds waited, when the device has done all it was told; 0 with one replica."""
        ready, self._ready = self._ready, None
        if ready is None:
            return 0.0
        if self._device.type == "cuda":
            self._done.synchronize()
            return float(ready.elapsed_time(self._done)) / 1000
        return float(self._done - ready)

    def _on_last_gradient(self, weight: torch.Tensor) -> None:
        self._ready = self._now()

    def _now(self) -> Any:
        # A GPU works on its own time: its events tell when it came to a place, not when it was told to go there.
        if self._device.type != "cuda":
            return time.monotonic()
        make_event: Any = torch.cuda.Event
        event = make_event(enable_timing=True)
        event.record()
        return event
