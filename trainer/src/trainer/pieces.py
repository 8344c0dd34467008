"""Pieces of the state: contiguous ranges of a parameter's flattened values, of its weight or of AdamW's two moments.

Every strategy can say what it holds in pieces, so that what one wrote any other can read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

KINDS = ("weight", "exp_avg", "exp_avg_sq")
"""What a piece is of: the parameter itself, or the running mean of its gradient or of the gradient's square."""

Range = tuple[str, str, int, int]
"""A piece without its values: kind, name of the parameter, first value, end."""


@dataclass(frozen=True)
class Piece:
    """Values `start` to `end` - 1 of a flattened parameter, or of one of its moments."""

    kind: str
    name: str
    start: int
    end: int
    values: torch.Tensor
    """One dimension; of a piece that a replica holds, a view of what it trains."""

    @property
    def range(self) -> Range:
        """The piece without its values."""
        return (self.kind, self.name, self.start, self.end)


def overlap(one: Range, other: Range) -> tuple[int, int] | None:
    """Return the first value and the end of what two ranges share; None when that is nothing."""
    if one[:2] != other[:2]:
        return None
    start, end = max(one[2], other[2]), min(one[3], other[3])
    return (start, end) if start < end else None


@torch.no_grad()
def copy_overlaps(stored: Iterable[Piece], held: Sequence[Piece]) -> None:
    """Copy what stored pieces share with held ones into these."""
    places: dict[tuple[str, str], list[Piece]] = {}
    for piece in held:
        places.setdefault((piece.kind, piece.name), []).append(piece)
    for source in stored:
        for target in places.get((source.kind, source.name), []):
            if shared := overlap(source.range, target.range):
                start, end = shared
                values = source.values[start - source.start : end - source.start]
                target.values[start - target.start : end - target.start].copy_(values)


def uncovered(needed: Iterable[Range], stored: Iterable[Range]) -> Range | None:
    """Return the first range of `needed` values that `stored` lacks; None when it has all."""
    there: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for kind, name, start, end in stored:
        there.setdefault((kind, name), []).append((start, end))
    for kind, name, start, end in needed:
        reached = start
        for begin, stop in sorted(there.get((kind, name), [])):
            if begin > reached:
                break
            reached = max(reached, stop)
        if reached < end:
            return (kind, name, reached, end)
    return None
