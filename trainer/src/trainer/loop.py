"""The training loop: one optimizer step after the other, until the end or until somebody asks to stop."""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from dataclasses import dataclass, field

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
from trainer.state import TrainingState
from trainer.stopping import StopRequest


@dataclass
class _Pace:
    """Steps and seconds since the last line of metrics."""

    steps: int = 0
    seconds: float = 0.0


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
    _pace: _Pace = field(default_factory=_Pace)

    def __post_init__(self) -> None:
        self._parallel = self.replicas.wrap(self.state.model)
        share = self.config.batch_size * self.replicas.rank // self.replicas.size
        end = self.config.batch_size * (self.replicas.rank + 1) // self.replicas.size
        self._own = (share, end)

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
        nats = self._backward()
        norm = self._clip()
        asked, loss = self._agree(nats)
        if not math.isfinite(loss) or not math.isfinite(norm):
            raise UserError(
                f"step {self.state.step + 1}: the loss is {loss} and the norm of its gradient {norm}, at learning rate "
                f"{rate:.3g}: training diverged and trying again will not help; lower trainer.learning_rate, or raise "
                "trainer.warmup_steps"
            )
        self.state.optimizer.step()
        self.state.optimizer.zero_grad()
        self.state.step += 1
        self.state.sequences += self.config.batch_size
        seconds = time.monotonic() - started
        self.state.seconds += seconds
        self._pace = _Pace(self._pace.steps + 1, self._pace.seconds + seconds)
        if self.state.step % self.config.log_every == 0 or self.state.step == self.config.steps:
            self._log(loss, rate, norm)
        return asked

    def _backward(self) -> float:
        first, end = self._own
        rows = self.windows.read(self.state.sequences + first, self.state.sequences + end).to(self.replicas.device)
        with self._half_precision():
            nats = summed_loss(self._parallel, rows)
        # The replicas' gradients are averaged, and their shares of the batch may differ by one sequence.
        with self.replicas.exchanging():
            torch.autograd.backward(nats * (self.replicas.size / self._batch_tokens))
        return float(nats.detach())

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

    def _agree(self, nats: float) -> tuple[bool, float]:
        total, asked = self.replicas.sum([nats, float(self.stop.asked)])
        return asked > 0, total / self._batch_tokens

    def _log(self, loss: float, rate: float, norm: float) -> None:
        pace, self._pace = self._pace, _Pace()
        if not self.replicas.first:
            return
        seconds_per_step = pace.seconds / pace.steps
        speed = self._batch_tokens / seconds_per_step
        remaining = seconds_per_step * (self.config.steps - self.state.step)
        self.metrics.add({
            "step": self.state.step,
            "steps": self.config.steps,
            "loss": loss,
            "learning_rate": rate,
            "grad_norm": norm,
            "tokens_per_second": speed,
            "remaining_seconds": remaining,
        })
        say(
            f"step {self.state.step}/{self.config.steps}  loss {loss:.3f}  {speed:,.0f} tokens/s  "
            f"learning rate {rate:.2e}  gradient {norm:.2f}  {duration(remaining)} left"
        )

    def _evaluate(self) -> None:
        share = max(1, self.config.batch_size // self.replicas.size)
        count = self.config.eval_batches * self.config.batch_size
        loss, _ = evaluate(self.state.model, self.heldout, self.replicas, count=count, batch_size=share)
        if self.replicas.first:
            self.metrics.add({"step": self.state.step, "eval_loss": loss})
            say(f"step {self.state.step}/{self.config.steps}  evaluation loss {loss:.3f}")
