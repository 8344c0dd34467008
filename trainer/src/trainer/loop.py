"""The training loop: one optimizer step after the other, until the end or until somebody asks to stop."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch

from trainer.checkpoints import Checkpoints
from trainer.config import TrainerConfig
from trainer.console import duration, say
from trainer.data import HeldOutWindows, TrainingWindows
from trainer.errors import UserError
from trainer.evaluation import evaluate, summed_loss
from trainer.metrics import MetricsLog
from trainer.optimizer import learning_rate, set_learning_rate
from trainer.replicas import Replicas
from trainer.shards import locate
from trainer.state import TrainingState
from trainer.stopping import StopRequest
from trainer.stopwatch import Exchange, Spent
from trainer.utilization import flops_per_token, peak_memory, utilization

SHOWN_WINDOWS = 32
"""Windows of a batch that are named when the loss is not finite, at most."""


@dataclass
class Loop:
    """Takes steps, and between them logs, evaluates, saves and listens."""

    config: TrainerConfig
    replicas: Replicas
    state: TrainingState
    windows: TrainingWindows
    heldout: HeldOutWindows
    checkpoints: Checkpoints
    metrics: MetricsLog
    stop: StopRequest
    shards: Sequence[Mapping[str, Any]]
    """What the manifest tells of the shards that `windows` reads."""
    _spent: Spent = field(default_factory=Spent)

    def __post_init__(self) -> None:
        self._parallel = self.replicas.wrap(self.state.model)
        share = self.config.batch_size * self.replicas.rank // self.replicas.size
        end = self.config.batch_size * (self.replicas.rank + 1) // self.replicas.size
        self._own = (share, end)
        self._exchange = Exchange(self.state.model, self.replicas.device, self.replicas.size)
        self._flops = flops_per_token(self.state.model, self.config.model.context)

    def run(self) -> bool:
        """Train to the last step; return False when asked to stop before it. The state of the end is saved."""
        saved = self.state.step
        asked = False
        while self.state.step < self.config.steps and not asked:
            asked = self._step()
            if self._due(self.config.eval_every):
                self._evaluate()
            if self._due(self.config.checkpoint_every) and not asked:
                saved = self.save()
        if saved != self.state.step:
            self.save()
        return self.state.step >= self.config.steps

    def save(self) -> int:
        """Save a checkpoint of this step; all replicas must call."""
        with self._spent.on("checkpoint"):
            state = self.state.to_dict(self.replicas)
            if self.replicas.first:
                # Metrics first: a run that resumes here must find the lines up to here.
                self.metrics.write()
                self.checkpoints.save(self.state.step, state)
        return self.state.step

    def _due(self, every: int) -> bool:
        return every > 0 and self.state.step % every == 0 and self.state.step < self.config.steps

    def _step(self) -> bool:
        """Take one step; return whether any replica was asked to stop."""
        started = time.monotonic()
        rate = learning_rate(self.config, self.state.step + 1)
        set_learning_rate(self.state.optimizer, rate)
        first, end = self.state.sequences, self.state.sequences + self.config.batch_size
        counted = self.windows.counted(first, end)
        nats = self._backward(counted)
        norm = self._clip()
        asked, loss = self._agree(nats, counted)
        if not math.isfinite(loss) or not math.isfinite(norm):
            raise UserError(self._diverged(loss, norm, rate, self.windows.starts(first, end)))
        self.state.optimizer.step()
        self.state.optimizer.zero_grad()
        self.state.step += 1
        self.state.sequences += self.config.batch_size
        seconds = time.monotonic() - started
        self.state.seconds += seconds
        self._spent.steps += 1
        self._spent.step += seconds
        if self.state.step % self.config.log_every == 0 or self.state.step == self.config.steps:
            self._log(loss, rate, norm)
        return asked

    def _backward(self, counted: int) -> float:
        first, end = self._own
        with self._spent.on("data"):
            batch = self.windows.read(self.state.sequences + first, self.state.sequences + end)
            batch = batch.to(self.replicas.device)
        with self._spent.on("compute"):
            with self._half_precision():
                nats = summed_loss(self._parallel, batch)
            # The replicas' gradients are averaged, and their shares of the batch may differ by one sequence.
            with self.replicas.exchanging():
                torch.autograd.backward(nats * (self.replicas.size / max(1, counted)))
            self._exchange.finished()
            value = float(nats.detach())
            waited = self._exchange.seconds()
        self._spent.compute -= waited
        self._spent.communication += waited
        return value

    def _diverged(self, loss: float, norm: float, rate: float, starts: list[int]) -> str:
        # The first ones only: a batch may have thousands of windows, and the step names them all.
        shown = starts[:SHOWN_WINDOWS]
        more = f" and {len(starts) - len(shown)} more" if len(starts) > len(shown) else ""
        return (
            f"step {self.state.step + 1}: the loss is {loss} and the norm of its gradient {norm}, at learning rate "
            f"{rate:.3g}: training diverged and trying again will not help; lower trainer.learning_rate, or raise "
            f"trainer.warmup_steps, or look at the batch: sequences {self.state.sequences} to "
            f"{self.state.sequences + self.config.batch_size - 1} of the order of trainer.seed {self.config.seed}, "
            f"windows of {self.config.model.context} + 1 tokens in {locate(self.shards, shown)}{more}"
        )

    def _half_precision(self) -> torch.autocast | nullcontext[None]:
        if self.replicas.device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False):
            return torch.autocast("cuda", dtype=torch.bfloat16)
        return nullcontext()

    @property
    def _batch_tokens(self) -> int:
        return self.config.batch_size * self.config.model.context

    def _clip(self) -> float:
        largest = self.config.grad_clip or math.inf
        return float(torch.nn.utils.clip_grad_norm_(self.state.model.parameters(), largest))

    def _agree(self, nats: float, counted: int) -> tuple[bool, float]:
        with self._spent.on("communication") if self.replicas.size > 1 else nullcontext():
            total, asked = self.replicas.sum([nats, float(self.stop.asked)])
        return asked > 0, total / max(1, counted)

    def _log(self, loss: float, rate: float, norm: float) -> None:
        spent, self._spent = self._spent, Spent()
        if not self.replicas.first:
            return
        seconds_per_step = spent.step / spent.steps
        speed = self._batch_tokens / seconds_per_step
        remaining = seconds_per_step * (self.config.steps - self.state.step)
        mfu = utilization(speed, self._flops, self.replicas.device, self.replicas.size)
        self.metrics.add({
            "step": self.state.step,
            "steps": self.config.steps,
            "loss": loss,
            "learning_rate": rate,
            "grad_norm": norm,
            "tokens_per_second": speed,
            "mfu": mfu,
            "memory_bytes": peak_memory(self.replicas.device),
            "remaining_seconds": remaining,
            "step_seconds": spent.step,
            "data_seconds": spent.data,
            "forward_backward_seconds": spent.compute,
            "communication_seconds": spent.communication,
            "checkpoint_seconds": spent.checkpoint,
        })
        say(
            f"step {self.state.step}/{self.config.steps}  loss {loss:.3f}  {speed:,.0f} tokens/s  "
            f"{'' if mfu is None else f'MFU {mfu:.1%}  '}"
            f"learning rate {rate:.2e}  gradient {norm:.2f}  {duration(remaining)} left"
        )

    def _evaluate(self) -> None:
        share = max(1, self.config.batch_size // self.replicas.size)
        count = self.config.eval_batches * self.config.batch_size
        loss, _ = evaluate(self.state.model, self.heldout, self.replicas, count=count, batch_size=share)
        if self.replicas.first:
            self.metrics.add({"step": self.state.step, "eval_loss": loss})
            say(f"step {self.state.step}/{self.config.steps}  evaluation loss {loss:.3f}")
