"""Strategies: how the replicas of a job share the work of one step. The loop knows this interface alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import nullcontext

import torch

from trainer.cluster import Cluster
from trainer.config import TrainerConfig
from trainer.data import Batch
from trainer.errors import UserError
from trainer.layout import Layout
from trainer.pieces import Piece
from trainer.replicas import Replicas


class Strategy(ABC):
    """What a replica does with its share of a step. Every method is called on all replicas, in the same order."""

    name: str
    """The word for it in `trainer.strategy`."""
    model: torch.nn.Module
    """The model to evaluate with; on a parameter server only its shape."""
    layout: Layout
    """Order and shapes of the model's parameters."""
    waited: float = 0.0
    """Seconds spent waiting for other replicas with nothing left to compute, since the start."""

    @property
    @abstractmethod
    def writes(self) -> bool:
        """Whether this replica's pieces belong into a checkpoint; others hold the same."""

    @abstractmethod
    def gradients(self, batch: Batch, counted: int) -> float:
        """Compute the gradient of the loss of this replica's share; return the share's nats.

        :param counted: tokens of the whole batch that the loss counts; the gradient is of the mean over them.
        """

    @abstractmethod
    def agree(self, values: list[float]) -> tuple[list[float], float]:
        """Add up each value over the replicas; return the sums, and the norm of the whole gradient."""

    @abstractmethod
    def step(self, rate: float, norm: float) -> None:
        """Clip the gradient, whose norm is `norm`, take a step of AdamW at learning rate `rate`, and forget it."""

    @abstractmethod
    def pieces(self) -> list[Piece]:
        """Return views of all that this replica holds of the weights and the moments."""

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """Return how many steps AdamW counted for each parameter that this replica holds."""

    @abstractmethod
    def restored(self, step: int, counts: Mapping[str, int]) -> None:
        """Go on from pieces that were just copied in, of `step`; `counts` holds other counts than that."""

    @abstractmethod
    def whole_model(self, make: Callable[[], torch.nn.Module]) -> torch.nn.Module:
        """Return the model with all its weights; on the first replica alone it is complete.

        :param make: makes a model of that shape.
        """


def half_precision(device: torch.device) -> torch.autocast | nullcontext[None]:
    """Compute in bfloat16 where the device has it; the weights stay as they are."""
    return torch.autocast("cuda", dtype=torch.bfloat16) if has_bfloat16(device) else nullcontext()


def has_bfloat16(device: torch.device) -> bool:
    """Whether a device computes in bfloat16 faster than in float32."""
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def choose_strategy(asked: str, cluster: Cluster) -> str:
    """Return the strategy for a cluster: the one that was asked for, or with `auto` the one that fits.

    :raises UserError: when the cluster cannot do what was asked.
    """
    if cluster.servers:
        allowed = ["parameter_server"]
    elif cluster.size > 1:
        allowed = ["ddp", "fsdp"]
    else:
        allowed = ["single"]
    if asked not in {"auto", *allowed}:
        raise UserError(
            f"trainer.strategy: got {asked!r} for {_described(cluster)}; allowed: auto, {', '.join(allowed)}; "
            f"change it, or {_NEEDED[asked]}"
        )
    return allowed[0] if asked == "auto" else asked


_NEEDED = {
    "single": "set the counts of workers and parameter servers to 0",
    "ddp": "give the job two replicas or more, and no parameter servers",
    "fsdp": "give the job two replicas or more, and no parameter servers",
    "parameter_server": "give the job parameter servers",
}


def _described(cluster: Cluster) -> str:
    servers = f" and {cluster.servers} parameter server{'s' * (cluster.servers > 1)}" if cluster.servers else ""
    return f"{cluster.workers} worker{'s' * (cluster.workers > 1)}{servers}"


def build_strategy(name: str, model: torch.nn.Module, config: TrainerConfig, replicas: Replicas) -> Strategy:
    """Build the strategy of that name around a model whose weights are the same on all replicas."""
    if name == "parameter_server":
        from trainer.parameter_server import ParameterServers

        return ParameterServers(model, config, replicas)
    if name == "fsdp":
        from trainer.fsdp import Sharded

        return Sharded(model, config, replicas)
    from trainer.replicated import Replicated

    return Replicated(model, config, replicas)
