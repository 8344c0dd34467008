"""Checkpoints of earlier versions: one file `step-N.pt` with the whole model and the whole optimizer."""

from __future__ import annotations

import io
from typing import Any

import torch

from trainer.layout import Layout
from trainer.pieces import KINDS, Piece
from trainer.state import encode_random


class OldCheckpoint:
    """A checkpoint in one file, read as if it were one of today.

    :raises KeyError: when it lacks what every such file has.
    """

    def __init__(self, name: str, data: bytes, layout: Layout) -> None:
        self._name = name
        self._layout = layout
        self._saved: dict[str, Any] = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)

    def record(self) -> dict[str, Any]:
        """Return what its `complete.json` would say."""
        saved = self._saved
        small = {key: saved[key] for key in ("step", "sequences", "seconds", "eval_loss_before")}
        pieces = [piece.range for piece in self.pieces()]
        # Names that the model does not have may be its buffers, or second names of one parameter.
        shapes = {name: list(saved["model"][name].shape) for name in self._layout.shapes if name in saved["model"]}
        return {
            **small,
            "id": self._name,
            "shapes": shapes,
            "counts": self._counts(),
            "random": [encode_random(state) for state in saved["random"]],
            "files": [{"name": self._name, "pieces": pieces}],
        }

    def pieces(self) -> list[Piece]:
        """Return all weights and moments, whole."""
        found = []
        for number, name in enumerate(self._layout.shapes):
            weight = self._saved["model"].get(name)
            if weight is None:
                continue
            # A parameter that had no gradient yet has no moments.
            moments = self._saved["optimizer"]["state"].get(number) or dict.fromkeys(
                KINDS[1:], torch.zeros_like(weight)
            )
            tensors = {"weight": weight, **{kind: moments[kind] for kind in KINDS[1:]}}
            found += [Piece(kind, name, 0, item.numel(), item.reshape(-1)) for kind, item in tensors.items()]
        return found

    def _counts(self) -> dict[str, int]:
        # AdamW numbers its parameters in the order of the layout.
        states = self._saved["optimizer"]["state"]
        names = enumerate(self._layout.shapes)
        return {name: int(states[number]["step"]) if number in states else 0 for number, name in names}
