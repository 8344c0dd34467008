"""The strategy `parameter_server`: servers own shards of parameters and moments, workers send them gradients.

All parameters, flattened, stand one after the other in the order of `layout.py`. Server s owns one contiguous range of
it. In a step the workers' gradients of that range are added up at the server, which clips them by the norm over all
servers, takes a step of AdamW, and sends the range back to all workers: the same mathematics as DDP, synchronous.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist

from trainer.config import TrainerConfig
from trainer.data import Batch
from trainer.evaluation import summed_loss
from trainer.layout import Layout, layout_of
from trainer.optimizer import adamw, clipped_step, optimized
from trainer.pieces import Piece
from trainer.replicas import Replicas
from trainer.stopwatch import stopwatch
from trainer.strategy import Strategy, half_precision


class ParameterServers(Strategy):
    """One replica's part: a worker's, or a server's."""

    name = "parameter_server"

    def __init__(self, model: torch.nn.Module, config: TrainerConfig, replicas: Replicas) -> None:
        self.layout = layout_of(model)
        self.model = model
        self._replicas = replicas
        self._largest = config.grad_clip
        self._ranges = [self.layout.share(number, replicas.servers) for number in range(replicas.servers)]
        self._groups = _meet(replicas)
        # Between the replicas all is on CPUs, where servers work; a worker's copies are on its device as well.
        self._weights = _Flat(self.layout, "weight")
        self._gradients = _Flat(self.layout, "gradient")
        self._weights.take(model)
        self._server = None
        if replicas.serves:
            number = replicas.rank - replicas.workers
            self._server = _Server(self.layout, self._ranges[number], self._weights.values, config)
            # Of the model only the shape is needed here.
            self.model.to("meta")
            self._weights.values = self._gradients.values = torch.empty(0)
        elif replicas.device.type == "cpu":
            self._weights.lend(model)
            self._gradients.lend(model)
        else:
            self.model.to(replicas.device)

    @property
    def writes(self) -> bool:
        """Whether this is a server."""
        return self._server is not None

    def gradients(self, batch: Batch, counted: int) -> float:
        """Compute the gradient of a worker's share."""
        with half_precision(self._replicas.device):
            nats = summed_loss(self.model, batch)
        torch.autograd.backward(nats / max(1, counted))
        return float(nats.detach())

    def agree(self, values: list[float]) -> tuple[list[float], float]:
        """Add up the gradients at the servers, then values, and with them the squares of the servers' sums."""
        if self._server is None:
            self._gradients.take(self.model)
        with stopwatch() as watch:
            self._exchange(self._gradients.values, self._server.gradient if self._server else None, self._sum)
            *sums, square = self._replicas.sum([*values, self._server.square() if self._server else 0.0])
        self.waited += watch.seconds
        return sums, math.sqrt(square)

    def step(self, rate: float, norm: float) -> None:
        """Take the step at the servers, and send the weights to all workers."""
        if self._server:
            self._server.step(rate, norm, self._largest)
        self._send()
        if self._server is None:
            self._gradients.clear(self.model)

    def pieces(self) -> list[Piece]:
        """Return a server's parts of parameters and their moments; workers hold only copies."""
        return self._server.pieces() if self._server else []

    def counts(self) -> dict[str, int]:
        """Return nothing: a server has a gradient for every value in every step."""
        return {}

    def restored(self, step: int, counts: Mapping[str, int]) -> None:
        """Set AdamW's counts, and send the weights to all workers."""
        if self._server:
            self._server.restored(step)
        self._send()

    def whole_model(self, make: Callable[[], torch.nn.Module]) -> torch.nn.Module:
        """Return the model, with memory of its own for each parameter."""
        if self._server is None:
            for parameter in self.model.parameters():
                parameter.data = parameter.data.clone()
        return self.model

    def _send(self) -> None:
        with stopwatch() as watch:
            self._exchange(self._weights.values, self._server.weights if self._server else None, self._spread)
        self.waited += watch.seconds
        if self._server is None:
            self._weights.give(self.model)

    def _exchange(
        self, worker: torch.Tensor, server: torch.Tensor | None, move: Callable[[torch.Tensor, int], Any]
    ) -> None:
        """Move all ranges at once: of a worker parts of its values, of a server all of its own."""
        with self._replicas.exchanging():
            if server is not None:
                move(server, self._replicas.rank - self._replicas.workers).wait()
                return
            works = [move(worker[start:end], number) for number, (start, end) in enumerate(self._ranges)]
            for work in works:
                work.wait()

    def _sum(self, values: torch.Tensor, number: int) -> Any:
        return dist.reduce(values, self._replicas.workers + number, group=self._groups[number], async_op=True)

    def _spread(self, values: torch.Tensor, number: int) -> Any:
        return dist.broadcast(values, self._replicas.workers + number, group=self._groups[number], async_op=True)


class _Flat:
    """All values of a model, or of its gradient, one after the other on the CPU."""

    def __init__(self, layout: Layout, kind: str) -> None:
        self.values = torch.zeros(layout.total, pin_memory=torch.cuda.is_available())
        self._layout = layout
        self._kind = kind
        self._lent = False

    def lend(self, model: torch.nn.Module) -> None:
        """Let the model itself work on these values, so that nothing is copied."""
        self._lent = True
        for parameter, place in self._places(model):
            if self._kind == "weight":
                parameter.data = place
            else:
                parameter.grad = place

    @torch.no_grad()
    def take(self, model: torch.nn.Module) -> None:
        """Copy the model's values here."""
        if self._lent:
            return
        for parameter, place in self._places(model):
            source = parameter.data if self._kind == "weight" else parameter.grad
            if source is None:
                place.zero_()
            else:
                place.copy_(source)

    @torch.no_grad()
    def give(self, model: torch.nn.Module) -> None:
        """Copy these values to the model's weights."""
        if not self._lent:
            for parameter, place in self._places(model):
                parameter.data.copy_(place)

    def clear(self, model: torch.nn.Module) -> None:
        """Begin the next gradient at zero."""
        if self._lent:
            self.values.zero_()
        else:
            model.zero_grad()

    def _places(self, model: torch.nn.Module) -> list[tuple[torch.nn.Parameter, torch.Tensor]]:
        parameters, places, offset = dict(model.named_parameters()), [], 0
        for name in self._layout.shapes:
            parameter = parameters[name]
            place = self.values[offset : offset + parameter.numel()].view(parameter.shape)
            places.append((parameter, place))
            offset += parameter.numel()
        return places


class _Server:
    """The range that a server owns: weights, the sum of the workers' gradients, and AdamW with its moments."""

    def __init__(self, layout: Layout, own: tuple[int, int], weights: torch.Tensor, config: TrainerConfig) -> None:
        self._start, self._end = own
        self._spans = layout.spans(*own)
        self.weights = weights[self._start : self._end].clone()
        self.gradient = torch.zeros_like(self.weights)
        border = min(max(layout.decayed, self._start), self._end) - self._start
        # Two tensors, since one tensor of AdamW's is in one group: with weight decay, and without.
        self._parts = [torch.nn.Parameter(part) for part in (self.weights[:border], self.weights[border:])]
        self._border = border
        self._optimizer = adamw(self._parts[:1], self._parts[1:], config)
        for parameter, gradient in zip(self._parts, (self.gradient[:border], self.gradient[border:]), strict=True):
            parameter.grad = gradient

    def square(self) -> float:
        """Return the square of the norm of the summed gradient."""
        return float(torch.linalg.vector_norm(self.gradient, dtype=torch.float64)) ** 2

    def step(self, rate: float, norm: float, largest: float) -> None:
        """Clip, take a step, and begin the next sum at zero."""
        clipped_step(self._optimizer, [self.gradient], rate=rate, norm=norm, largest=largest)
        self.gradient.zero_()

    def restored(self, step: int) -> None:
        """Set AdamW's counts."""
        for parameter in optimized(self._optimizer):
            self._optimizer.state[parameter]["step"].fill_(step)

    def pieces(self) -> list[Piece]:
        """Return the parts of parameters that the range is made of, and their moments."""
        return [
            Piece(kind, span.name, span.start, span.end, self._values(kind, span.offset, span.end - span.start))
            for span in self._spans
            for kind in ("weight", "exp_avg", "exp_avg_sq")
        ]

    def _values(self, kind: str, offset: int, size: int) -> torch.Tensor:
        first = offset - self._start
        if kind == "weight":
            return self.weights[first : first + size]
        # No parameter lies on both sides of the border.
        part = int(first >= self._border)
        moments: torch.Tensor = self._optimizer.state[self._parts[part]][kind]
        first -= self._border * part
        return moments[first : first + size]


def _meet(replicas: Replicas) -> list[Any]:
    """Make a group of every server and all workers; each replica must name every group."""
    workers = list(range(replicas.workers))
    return [dist.new_group([*workers, replicas.workers + number]) for number in range(replicas.servers)]
