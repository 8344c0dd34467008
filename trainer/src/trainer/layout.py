"""One fixed order of all that is trained: the parameters, flattened, one after the other."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Span:
    """Values `start` to `end` - 1 of a flattened parameter, and where they begin in the order of all values."""

    name: str
    start: int
    end: int
    offset: int


@dataclass(frozen=True)
class Layout:
    """The parameters with weight decay, then those without; each of the two in the model's order.

    That is the order of AdamW's groups as well.
    """

    shapes: dict[str, tuple[int, ...]]
    """Name of every parameter, in that order -> its shape."""
    decayed: int
    """Values with weight decay: the first ones."""

    @property
    def total(self) -> int:
        """Number of values."""
        return sum(map(_size, self.shapes.values()))

    def share(self, number: int, count: int) -> tuple[int, int]:
        """Return the first value and the end of the share of one of `count`; shares differ by one value at most."""
        return self.total * number // count, self.total * (number + 1) // count

    def spans(self, start: int, end: int) -> list[Span]:
        """Return what parts of which parameters the values `start` to `end` - 1 are."""
        found, offset = [], 0
        for name, shape in self.shapes.items():
            first, last = max(start, offset), min(end, offset + _size(shape))
            if first < last:
                found.append(Span(name, first - offset, last - offset, first))
            offset += _size(shape)
        return found


def layout_of(model: torch.nn.Module) -> Layout:
    """Return the order of a model's parameters; one that is used in two places counts once."""
    named = [(name, item) for name, item in model.named_parameters() if item.requires_grad]
    ordered = [pair for pair in named if decays(pair[1])] + [pair for pair in named if not decays(pair[1])]
    shapes = {name: tuple(item.shape) for name, item in ordered}
    return Layout(shapes, decayed=sum(item.numel() for _, item in named if decays(item)))


def decays(parameter: torch.Tensor) -> bool:
    """Whether weight decay is for this parameter: matrices decay, vectors (norms, biases) do not."""
    return parameter.dim() >= 2


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size
