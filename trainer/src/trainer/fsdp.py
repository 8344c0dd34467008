"""The strategy `fsdp`: weights, gradients and moments are sharded over the replicas (torch's FSDP2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from trainer.config import TrainerConfig
from trainer.data import Batch
from trainer.evaluation import summed_loss
from trainer.layout import layout_of
from trainer.optimizer import build_optimizer, clipped_step, optimized
from trainer.pieces import Piece
from trainer.replicas import Replicas
from trainer.replicated import counts_of, set_counts, tensors_of
from trainer.stopwatch import stopwatch
from trainer.strategy import Strategy, has_bfloat16


class Sharded(Strategy):
    """Each replica holds rows of every parameter; those of one block are put together while it is computed."""

    name = "fsdp"

    def __init__(self, model: torch.nn.Module, config: TrainerConfig, replicas: Replicas) -> None:
        self.layout = layout_of(model)
        self.model = model
        self._replicas = replicas
        self._largest = config.grad_clip
        self._shard()
        parameters = dict(model.named_parameters())
        # Kept: after a forward pass without a backward one the model has the root's whole parameters in their place.
        self._named: list[tuple[str, Any]] = [(name, parameters[name]) for name in self.layout.shapes]
        self._optimizer = build_optimizer(model, config)
        self._parameters = list(optimized(self._optimizer))

    @property
    def writes(self) -> bool:
        """Every replica holds what no other does."""
        return True

    def gradients(self, batch: Batch, counted: int) -> float:
        """Compute the gradient of the whole batch; each replica is left with its rows of it."""
        with self._replicas.exchanging():
            nats = summed_loss(self.model, batch)
            # The replicas' gradients are averaged, and their shares of the batch may differ by one sequence.
            torch.autograd.backward(nats * (self._replicas.size / max(1, counted)))
        return float(nats.detach())

    def agree(self, values: list[float]) -> tuple[list[float], float]:
        """Add up values, and with them the squares of the replicas' rows of the gradient."""
        own = float(torch.nn.utils.get_total_norm(self._gradients())) ** 2
        with stopwatch() as watch:
            *sums, square = self._replicas.sum([*values, own])
        self.waited += watch.seconds
        return sums, math.sqrt(square)

    def step(self, rate: float, norm: float) -> None:
        """Take a step with the rows of this replica."""
        clipped_step(self._optimizer, self._gradients(), rate=rate, norm=norm, largest=self._largest)
        self._optimizer.zero_grad()

    def pieces(self) -> list[Piece]:
        """Return the rows of this replica, which are contiguous."""
        found = []
        for name, parameter in self._named:
            start, end = self._rows(self.layout.shapes[name])
            for kind, values in tensors_of(parameter, self._optimizer).items():
                if start < end:
                    found.append(Piece(kind, name, start, end, local(values).view(-1)))
        return found

    def counts(self) -> dict[str, int]:
        """Return AdamW's counts."""
        return counts_of(self._named, self._optimizer)

    def restored(self, step: int, counts: Mapping[str, int]) -> None:
        """Set AdamW's counts."""
        set_counts(self._named, self._optimizer, step, counts)

    def whole_model(self, make: Callable[[], torch.nn.Module]) -> torch.nn.Module:
        """Put the parameters together, one after the other, in a model of the first replica's."""
        model = make() if self._replicas.first else self.model
        places = dict(model.named_parameters())
        with torch.no_grad(), self._replicas.exchanging():
            for name, parameter in self._named:
                whole = parameter.full_tensor()
                if self._replicas.first:
                    places[name].copy_(whole)
        return model.to(self._replicas.device) if self._replicas.first else model

    def _shard(self) -> None:
        policy = MixedPrecisionPolicy()
        if has_bfloat16(self._replicas.device):
            policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        mesh = init_device_mesh(self._replicas.device.type, (self._replicas.size,))
        # What transformers will not split between devices are the blocks; a family that names none is one shard.
        blocks = set(getattr(self.model, "_no_split_modules", None) or ())
        for module in list(self.model.modules()):
            if type(module).__name__ in blocks:
                fully_shard(module, mesh=mesh, mp_policy=policy)
        fully_shard(self.model, mesh=mesh, mp_policy=policy)

    def _rows(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """Return the first value and the end of this replica's rows of a parameter, cut as torch.chunk cuts."""
        rows = -(-shape[0] // self._replicas.size)
        width = math.prod(shape[1:])
        first, end = (min(number * rows, shape[0]) for number in (self._replicas.rank, self._replicas.rank + 1))
        return first * width, end * width

    def _gradients(self) -> list[torch.Tensor]:
        gradients = (local(item.grad) for item in self._parameters if item.grad is not None)
        return [item for item in gradients if item.numel()]


def local(tensor: Any) -> torch.Tensor:
    """Return this replica's rows of a sharded tensor."""
    rows: torch.Tensor = tensor.to_local()
    return rows
