"""The strategies `single` and `ddp`: every replica holds the whole model and the whole optimizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from trainer.config import TrainerConfig
from trainer.data import Batch
from trainer.evaluation import summed_loss
from trainer.layout import layout_of
from trainer.optimizer import build_optimizer, clipped_step, optimized
from trainer.pieces import Piece
from trainer.replicas import Replicas
from trainer.stopwatch import Exchange, stopwatch
from trainer.strategy import Strategy, half_precision


class Replicated(Strategy):
    """Each replica computes the gradient of its share, and they average them while they are computed (DDP)."""

    def __init__(self, model: torch.nn.Module, config: TrainerConfig, replicas: Replicas) -> None:
        self.name = "ddp" if replicas.size > 1 else "single"
        self.model = model.to(replicas.device)
        self.layout = layout_of(self.model)
        self._replicas = replicas
        self._largest = config.grad_clip
        # Buffers are constants of the architecture: sending them before each step would only take time.
        self._parallel = (
            DistributedDataParallel(self.model, broadcast_buffers=False) if replicas.size > 1 else self.model
        )
        self._optimizer = build_optimizer(self.model, config)
        self._parameters = list(optimized(self._optimizer))
        self._exchange = Exchange(self.model, replicas.device, replicas.size)

    @property
    def writes(self) -> bool:
        """Whether this is the first replica."""
        return self._replicas.first

    def gradients(self, batch: Batch, counted: int) -> float:
        """Compute the gradient of the whole batch."""
        with self._replicas.exchanging():
            with half_precision(self._replicas.device):
                nats = summed_loss(self._parallel, batch)
            # The replicas' gradients are averaged, and their shares of the batch may differ by one sequence.
            torch.autograd.backward(nats * (self._replicas.size / max(1, counted)))
        self._exchange.finished()
        value = float(nats.detach())
        self.waited += self._exchange.seconds()
        return value

    def agree(self, values: list[float]) -> tuple[list[float], float]:
        """Add up values; each replica has the whole gradient, so its norm is known without the others."""
        norm = float(torch.nn.utils.get_total_norm(self._gradients()))
        if self._replicas.size == 1:
            return values, norm
        with stopwatch() as watch:
            sums = self._replicas.sum(values)
        self.waited += watch.seconds
        return sums, norm

    def step(self, rate: float, norm: float) -> None:
        """Take the same step on every replica."""
        clipped_step(self._optimizer, self._gradients(), rate=rate, norm=norm, largest=self._largest)
        self._optimizer.zero_grad()

    def pieces(self) -> list[Piece]:
        """Return every parameter and its moments, whole."""
        return [
            Piece(kind, name, 0, values.numel(), values.view(-1))
            for name, parameter in self._named()
            for kind, values in tensors_of(parameter, self._optimizer).items()
        ]

    def counts(self) -> dict[str, int]:
        """Return AdamW's counts."""
        return counts_of(self._named(), self._optimizer)

    def restored(self, step: int, counts: Mapping[str, int]) -> None:
        """Set AdamW's counts."""
        set_counts(self._named(), self._optimizer, step, counts)

    def whole_model(self, make: Callable[[], torch.nn.Module]) -> torch.nn.Module:
        """Return the model as it is."""
        return self.model

    def _gradients(self) -> list[torch.Tensor]:
        return [parameter.grad for parameter in self._parameters if parameter.grad is not None]

    def _named(self) -> list[tuple[str, torch.nn.Parameter]]:
        parameters = dict(self.model.named_parameters())
        return [(name, parameters[name]) for name in self.layout.shapes]


def tensors_of(parameter: torch.Tensor, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """Return a parameter and its moments, by kind of piece."""
    state = optimizer.state[parameter]
    return {"weight": parameter.detach(), "exp_avg": state["exp_avg"], "exp_avg_sq": state["exp_avg_sq"]}


def counts_of(named: list[tuple[str, Any]], optimizer: torch.optim.Optimizer) -> dict[str, int]:
    """Return AdamW's count of steps for each parameter."""
    return {name: int(optimizer.state[parameter]["step"]) for name, parameter in named}


def set_counts(
    named: list[tuple[str, Any]], optimizer: torch.optim.Optimizer, step: int, counts: Mapping[str, int]
) -> None:
    """Set AdamW's count of every parameter: `step`, where `counts` does not say otherwise."""
    for name, parameter in named:
        optimizer.state[parameter]["step"].fill_(counts.get(name, step))
