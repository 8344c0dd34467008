"""The training loop: one optimizer step after the other, until the end or until somebody asks to stop."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainer.config import TrainerConfig
from trainer.console import duration, say
from trainer.data import HeldOutWindows, TrainingWindows
from trainer.errors import UserError
from trainer.evaluation import evaluate
from trainer.metrics import MetricsLog
from trainer.optimizer import learning_rate
from trainer.replicas import Replicas
from trainer.saving import Saver
from trainer.shards import locate
from trainer.state import TrainingState
from trainer.stopping import StopRequest
from trainer.stopwatch import Spent
from trainer.strategy import Strategy
from trainer.utilization import flops_per_token, peak_memory, utilization

SHOWN_WINDOWS = 32
"""Windows of a batch that are named when the loss is not finite, at most."""


@dataclass
class Steps:
    """Takes steps with the other replicas, and between them saves and listens: what a parameter server does."""

    config: TrainerConfig
    replicas: Replicas
    strategy: Strategy
    state: TrainingState
    saver: Saver
    stop: StopRequest
    _spent: Spent = field(default_factory=Spent)

    def run(self) -> bool:
        """Train to the last step; return False when asked to stop before it. The state of the end is saved."""
        saved = self.state.step
        asked = False
        while self.state.step < self.config.steps and not asked:
            asked = self._step()
            if self._due(self.config.eval_every):
                self._evaluate()
            if self._due(self.config.checkpoint_every) and not asked:
                saved = self._save()
        if saved != self.state.step:
            self._save()
        self.saver.finish()
        return self.state.step >= self.config.steps

    def _save(self) -> int:
        with self._spent.on("checkpoint"):
            self.saver.begin(self.state)
        return self.state.step

    def _due(self, every: int) -> bool:
        return every > 0 and self.state.step % every == 0 and self.state.step < self.config.steps

    def _step(self) -> bool:
        """Take one step; return whether any replica was asked to stop."""
        started = time.monotonic()
        waited = self.strategy.waited
        rate = learning_rate(self.config, self.state.step + 1)
        nats, counted = self._gradients()
        sums, norm = self.strategy.agree([nats, float(self.stop.asked), self.saver.written])
        loss = sums[0] / max(1, counted)
        if not math.isfinite(sums[0]) or not math.isfinite(norm):
            raise UserError(self._diverged(loss, norm, rate))
        self.strategy.step(rate, norm)
        self.saver.agree(sums[2])
        self.state.step += 1
        self.state.sequences += self.config.batch_size
        seconds = time.monotonic() - started
        self.state.seconds += seconds
        self._spent.steps += 1
        self._spent.step += seconds
        self._spent.communication += self.strategy.waited - waited
        if self.state.step % self.config.log_every == 0 or self.state.step == self.config.steps:
            self._log(loss, rate, norm)
        return sums[1] > 0

    def _gradients(self) -> tuple[float, int]:
        """Compute the gradient of this replica's share; return its nats, and the tokens that count in all shares."""
        return 0.0, 1

    def _evaluate(self) -> None:
        """Evaluate with the other workers."""

    def _log(self, loss: float, rate: float, norm: float) -> None:
        """Write a line of metrics."""

    def _diverged(self, loss: float, norm: float, rate: float) -> str:
        return f"step {self.state.step + 1}: loss or gradient are not finite; the first replica tells of the batch"


@dataclass
class Loop(Steps):
    """The same with a share of the batch, and on the first replica with metrics."""

    windows: TrainingWindows = field(kw_only=True)
    heldout: HeldOutWindows = field(kw_only=True)
    metrics: MetricsLog = field(kw_only=True)
    shards: Sequence[Mapping[str, Any]] = field(kw_only=True)
    """What the manifest tells of the shards that `windows` reads."""

    def __post_init__(self) -> None:
        first = self.config.batch_size * self.replicas.rank // self.replicas.workers
        end = self.config.batch_size * (self.replicas.rank + 1) // self.replicas.workers
        self._own = (first, end)
        self._batch_tokens = self.config.batch_size * self.config.model.context
        self._flops = flops_per_token(self.strategy.model, self.config.model.context)

    def _gradients(self) -> tuple[float, int]:
        first, end = self._own
        begin = self.state.sequences
        with self._spent.on("data"):
            counted = self.windows.counted(begin, begin + self.config.batch_size)
            batch = self.windows.read(begin + first, begin + end).to(self.replicas.device)
        waited = self.strategy.waited
        with self._spent.on("compute"):
            nats = self.strategy.gradients(batch, counted)
        self._spent.compute -= self.strategy.waited - waited
        return nats, counted

    def _diverged(self, loss: float, norm: float, rate: float) -> str:
        starts = self.windows.starts(self.state.sequences, self.state.sequences + self.config.batch_size)
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

    def _log(self, loss: float, rate: float, norm: float) -> None:
        spent, self._spent = self._spent, Spent()
        if not self.replicas.first:
            return
        seconds_per_step = spent.step / spent.steps
        speed = self._batch_tokens / seconds_per_step
        remaining = seconds_per_step * (self.config.steps - self.state.step)
        mfu = utilization(speed, self._flops, self.replicas.device, self.replicas.workers)
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
        share = max(1, self.config.batch_size // self.replicas.workers)
        count = self.config.eval_batches * self.config.batch_size
        loss, _ = evaluate(self.strategy.model, self.heldout, self.replicas, count=count, batch_size=share)
        if self.replicas.first:
            self.metrics.add({"step": self.state.step, "eval_loss": loss})
            say(f"step {self.state.step}/{self.config.steps}  evaluation loss {loss:.3f}")
