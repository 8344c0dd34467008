"""A training job from its first evaluation to its result."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any

from trainer.champion import evaluate_champion
from trainer.checkpoints import Checkpoints
from trainer.cluster import Cluster
from trainer.console import duration, say
from trainer.data import HeldOutWindows, TrainingWindows
from trainer.errors import UserError
from trainer.evaluation import FULL_WINDOWS, evaluate
from trainer.evaluator import Evaluator
from trainer.events import EventFiles
from trainer.export import export
from trainer.files import Files, join
from trainer.job import Job
from trainer.loop import Loop, Steps
from trainer.metrics import MetricsLog
from trainer.pretrained import first_model
from trainer.replicas import Replicas, joined
from trainer.restoring import restore
from trainer.saving import Saver
from trainer.shards import read_mask, read_tokens
from trainer.state import TrainingState
from trainer.stopping import StopRequest
from trainer.strategy import build_strategy, choose_strategy, half_precision


def train(files: Files, job: Job, cluster: Cluster) -> int:
    """Train `job` as one replica of `cluster`, or evaluate what it trains; return the exit code."""
    strategy = choose_strategy(job.config.strategy, cluster)
    if cluster.workers > job.config.batch_size:
        raise UserError(
            f"trainer.batch_size: got {job.config.batch_size} sequences for {cluster.workers} replicas; "
            f"allowed: at least {cluster.workers}"
        )
    stop = StopRequest(files, job.control)
    if cluster.evaluator:
        with stop.listening(poll=False):
            Evaluator(files, job, cluster, stop).run()
        return 0
    # Listening comes second: while the replicas wait for each other there is nothing to save, and SIGTERM just ends.
    with joined(cluster) as replicas, stop.listening(poll=replicas.first):
        Training(files, job, replicas, stop, strategy).run()
    return 0


class Training:
    """One replica's view of a training job."""

    def __init__(self, files: Files, job: Job, replicas: Replicas, stop: StopRequest, strategy: str) -> None:
        self._files = files
        self._job = job
        self._replicas = replicas
        self._stop = stop
        events = EventFiles(files, job.events) if job.events and replicas.first else None
        self._metrics = MetricsLog(files, join(job.folder, "metrics.jsonl"), events)
        if not replicas.serves:
            config, context = job.config, job.config.model.context
            train, heldout = (read_tokens(files, job.tokens, job.manifest, split) for split in ("train", "heldout"))
            mask, heldout_mask = (read_mask(files, job.tokens, job.manifest, split) for split in ("train", "heldout"))
            self._windows = TrainingWindows(train, context, config.seed, mask)
            self._heldout = HeldOutWindows(heldout, context, heldout_mask)
        self._strategy = build_strategy(strategy, first_model(files, job), job.config, replicas)
        self._checkpoints = Checkpoints(files, join(job.folder, "checkpoints"), self._strategy.layout)
        self._state = TrainingState()

    def run(self) -> None:
        """Train, or go on training, and leave what a training job leaves; `result.json` comes last."""
        resumed_from = restore(self._checkpoints, self._strategy, self._replicas, self._state)
        self._greet(resumed_from)
        if not self._replicas.first:
            if self._train()[0]:
                self._strategy.whole_model(self._new_model)
            return
        # A result of an earlier attempt must not pass for one of this.
        self._files.delete(join(self._job.folder, "result.json"))
        self._metrics.restore(self._state.step)
        with self._metrics.writing():
            finished, eval_loss, eval_tokens = self._train()
        result = self._result(resumed_from)
        if finished:
            generation = export(self._files, self._job, self._strategy.whole_model(self._new_model))
            result |= {"status": "succeeded", "eval_loss": eval_loss, "eval_tokens": eval_tokens}
            result |= {"model": self._job.model_folder, "sample": generation.pop("sample"), "generation": generation}
            result["champion"] = self._champion(eval_loss)
        self._files.write_json(join(self._job.folder, "result.json"), result)
        if not finished:
            self._stop.acknowledge(self._state.step)
        self._farewell(result)

    def _train(self) -> tuple[bool, float, int]:
        if self._state.step == 0:
            self._state.eval_loss_before, _ = self._evaluate_fully()
        saver = Saver(self._checkpoints, self._strategy, self._replicas, before_complete=self._metrics.write)
        try:
            if not self._steps(saver).run():
                return False, 0.0, 0
        finally:
            saver.close()
        return True, *self._evaluate_fully()

    def _steps(self, saver: Saver) -> Steps:
        common = (self._job.config, self._replicas, self._strategy, self._state, saver, self._stop)
        if self._replicas.serves:
            return Steps(*common)
        return Loop(
            *common,
            windows=self._windows,
            heldout=self._heldout,
            metrics=self._metrics,
            shards=self._job.manifest["train"]["shards"],
        )

    def _evaluate_fully(self) -> tuple[float, int]:
        if self._replicas.serves:
            return math.nan, 0
        share = max(1, self._job.config.batch_size // self._replicas.workers)
        loss, tokens = evaluate(
            self._strategy.model, self._heldout, self._replicas, count=FULL_WINDOWS, batch_size=share
        )
        if self._replicas.first:
            self._metrics.add({"step": self._state.step, "eval_loss": loss})
            say(f"step {self._state.step}/{self._job.config.steps}  evaluation loss {loss:.3f} on {tokens:,} tokens")
        return loss, tokens

    def _champion(self, eval_loss: float) -> dict[str, Any] | None:
        device = self._replicas.device
        # Sharded replicas evaluate in the precision that they train in.
        precision = half_precision(device) if self._strategy.name == "fsdp" else nullcontext()
        return evaluate_champion(self._files, self._job, device, eval_loss, precision)

    def _new_model(self) -> Any:
        return first_model(self._files, self._job)

    def _result(self, resumed_from: int | None) -> dict[str, Any]:
        tokens = self._state.sequences * self._job.config.model.context
        return {
            "schema": 1,
            "status": "preempted",
            "step": self._state.step,
            "steps": self._job.config.steps,
            "tokens": tokens,
            "train_seconds": self._state.seconds,
            "tokens_per_second": tokens / self._state.seconds,
            "parameters": self._parameters,
            "replicas": self._replicas.size,
            "strategy": self._strategy.name,
            "eval_loss_before": self._state.eval_loss_before,
            "eval_loss": None,
            "eval_tokens": None,
            "unigram_entropy": self._job.manifest["unigram_entropy"],
            "sample": None,
            "generation": None,
            "champion": None,
            "model": None,
            "resumed_from": resumed_from,
        }

    @property
    def _parameters(self) -> int:
        return self._strategy.layout.total

    def _greet(self, resumed_from: int | None) -> None:
        what = "parameter server" if self._replicas.serves else "replica"
        place = f"{what} {self._replicas.rank} of {self._replicas.size} on {self._replicas.device}"
        begin = "from the start" if resumed_from is None else f"resumed from step {resumed_from}"
        architecture: Any = self._strategy.model.config
        model = f"{architecture.model_type} with {self._parameters:,} parameters"
        say(f"{place}: {model}, strategy {self._strategy.name}, {self._job.config.steps} steps, {begin}")

    def _farewell(self, result: dict[str, Any]) -> None:
        if result["status"] == "preempted":
            say(
                f"stopped as asked: step {result['step']} of {result['steps']} is saved, the next attempt goes on there"
            )
            return
        say(
            f"done: evaluation loss {result['eval_loss_before']:.3f} -> {result['eval_loss']:.3f} (unigram entropy "
            f"{result['unigram_entropy']:.3f}), {result['tokens_per_second']:,.0f} tokens/s, "
            f"{duration(result['train_seconds'])} of training; model in {result['model']}"
        )
        say(f"sample: {result['sample']}")
