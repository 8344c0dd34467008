"""Saving checkpoints while training goes on."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

import torch

from trainer.checkpoints import Checkpoints, Record
from trainer.pieces import Piece
from trainer.replicas import Replicas
from trainer.state import TrainingState, random_state
from trainer.strategy import Strategy


class Saver:
    """Copies the state at a step boundary, and writes it in a thread of its own; one checkpoint at a time.

    Each replica writes its file. When all have, which they tell each other with the sums of a step, the first one
    completes the checkpoint. An error in the thread is raised by the next call here.

    :param before_complete: what the first replica does before a checkpoint is complete.
    """

    def __init__(
        self, checkpoints: Checkpoints, strategy: Strategy, replicas: Replicas, before_complete: Callable[[], None]
    ) -> None:
        self._checkpoints = checkpoints
        self._strategy = strategy
        self._replicas = replicas
        self._before_complete = before_complete
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._copies: list[Piece] = []
        self._record: Record | None = None
        self._writing: Future[None] | None = None
        self._completing: Future[None] | None = None
        self._index: list[dict[str, Any]] | None = None

    @property
    def written(self) -> float:
        """1.0 when this replica's file of the present checkpoint is written, else 0.0."""
        if self._completing and self._completing.done():
            self._completing.result()
        if self._writing is None or not self._writing.done():
            return 0.0
        self._writing.result()
        return 1.0

    def begin(self, state: TrainingState) -> None:
        """Save the state as it is now, after the checkpoint before; all replicas must call."""
        self.finish()
        counts = {name: count for name, count in self._strategy.counts().items() if count != state.step}
        self._record = {
            "schema": 1,
            "id": uuid.uuid4().hex[:16],
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            **asdict(state),
            "strategy": self._strategy.name,
            "replicas": self._replicas.size,
            "shapes": {name: list(shape) for name, shape in self._strategy.layout.shapes.items()},
            "counts": counts,
            "random": self._replicas.gather(random_state(self._replicas.device)),
            "files": self._files(),
        }
        self._copy()
        self._writing = self._thread.submit(self._write, state.step)

    def agree(self, written: float) -> None:
        """Take the sum of `written` over the replicas: when it is all of them, the checkpoint can be completed."""
        if self._record is None or written < self._replicas.size:
            return
        record, self._record, self._writing = self._record, None, None
        if self._replicas.first:
            self._completing = self._thread.submit(self._complete, record)

    def finish(self) -> None:
        """Wait until the checkpoint that is being saved is complete; all replicas must call."""
        if self._writing is not None:
            self._writing.result()
            self.agree(self._replicas.sum([1.0])[0])
        if self._completing is not None:
            self._completing.result()
            self._completing = None

    def close(self) -> None:
        """End the thread, when it has done what it was told."""
        self._thread.shutdown()

    def _files(self) -> list[dict[str, Any]]:
        if self._index is None:  # what a replica holds does not change
            ranges = [piece.range for piece in self._strategy.pieces()] if self._strategy.writes else None
            held = self._replicas.gather(ranges)
            self._index = [
                {"name": self._file(rank), "pieces": pieces} for rank, pieces in enumerate(held) if pieces is not None
            ]
        return self._index

    def _file(self, rank: int) -> str:
        return f"replica-{rank}-of-{self._replicas.size}.pt"

    @torch.no_grad()
    def _copy(self) -> None:
        if not self._strategy.writes:
            return
        pieces = self._strategy.pieces()
        if not self._copies:
            # The same memory for every checkpoint; pinned, a GPU fills it while the next step is prepared.
            pinned = self._replicas.device.type == "cuda"
            self._copies = [
                replace(piece, values=torch.empty(piece.values.shape, dtype=piece.values.dtype, pin_memory=pinned))
                for piece in pieces
            ]
        for copy, piece in zip(self._copies, pieces, strict=True):
            copy.values.copy_(piece.values, non_blocking=True)
        if self._replicas.device.type == "cuda":
            torch.cuda.synchronize()

    def _write(self, step: int) -> None:
        if self._strategy.writes:
            self._checkpoints.write(step, self._file(self._replicas.rank), self._copies)

    def _complete(self, record: Record) -> None:
        self._before_complete()
        self._checkpoints.commit(record["step"], record)
