"""A training job from its first evaluation to its result."""

from __future__ import annotations

from typing import Any

from trainer.checkpoints import Checkpoints
from trainer.cluster import Cluster
from trainer.console import duration, say
from trainer.data import HeldOutWindows, TrainingWindows
from trainer.errors import UserError
from trainer.evaluation import FULL_WINDOWS, evaluate
from trainer.events import EventFiles
from trainer.export import export
from trainer.files import Files, join
from trainer.job import Job
from trainer.loop import Loop
from trainer.metrics import MetricsLog
from trainer.optimizer import build_optimizer
from trainer.pretrained import first_model
from trainer.replicas import Replicas, joined
from trainer.shards import read_mask, read_tokens
from trainer.state import TrainingState
from trainer.stopping import StopRequest


def train(files: Files, job: Job, cluster: Cluster) -> int:
    """Train `job` as one replica of `cluster`; return the exit code."""
    if cluster.size > job.config.batch_size:
        raise UserError(
            f"trainer.batch_size: got {job.config.batch_size} sequences for {cluster.size} replicas; "
            f"allowed: at least {cluster.size}"
        )
    stop = StopRequest(files, job.control)
    # Listening comes second: while the replicas wait for each other there is nothing to save, and SIGTERM just ends.
    with joined(cluster) as replicas, stop.listening(poll=replicas.first):
        Training(files, job, replicas, stop).run()
    return 0


class Training:
    """One replica's view of a training job."""

    def __init__(self, files: Files, job: Job, replicas: Replicas, stop: StopRequest) -> None:
        self._files = files
        self._job = job
        self._replicas = replicas
        self._stop = stop
        events = EventFiles(files, job.events) if job.events and replicas.first else None
        self._metrics = MetricsLog(files, join(job.folder, "metrics.jsonl"), events)
        self._checkpoints = Checkpoints(files, join(job.folder, "checkpoints"))
        config, context = job.config, job.config.model.context
        train, heldout = (read_tokens(files, job.tokens, job.manifest, split) for split in ("train", "heldout"))
        mask, heldout_mask = (read_mask(files, job.tokens, job.manifest, split) for split in ("train", "heldout"))
        self._windows = TrainingWindows(train, context, config.seed, mask)
        self._heldout = HeldOutWindows(heldout, context, heldout_mask)
        model = first_model(files, job).to(replicas.device)
        self._state = TrainingState(model, build_optimizer(model, config))

    def run(self) -> None:
        """Train, or go on training, and leave what a training job leaves; `result.json` comes last."""
        resumed_from = self._resume()
        self._greet(resumed_from)
        if not self._replicas.first:
            self._train()
            return
        # A result of an earlier attempt must not pass for one of this.
        self._files.delete(join(self._job.folder, "result.json"))
        self._metrics.restore(self._state.step)
        with self._metrics.writing():
            finished, eval_loss, eval_tokens = self._train()
        result = self._result(resumed_from)
        if finished:
            sample = export(self._files, self._job, self._state.model)
            result |= {"status": "succeeded", "eval_loss": eval_loss, "eval_tokens": eval_tokens, "sample": sample}
            result |= {"model": self._job.model_folder}
        self._files.write_json(join(self._job.folder, "result.json"), result)
        if not finished:
            self._stop.acknowledge(self._state.step)
        self._farewell(result)

    def _resume(self) -> int | None:
        found = self._checkpoints.newest_sound() if self._replicas.first else None
        # The first replica decides, so that all go on from the same step.
        step: int | None = self._replicas.gather(found)[0]
        if step is not None:
            self._state.restore(self._checkpoints.load(step), self._replicas)
        return step

    def _train(self) -> tuple[bool, float, int]:
        if self._state.step == 0:
            self._state.eval_loss_before, _ = self._evaluate_fully()
        loop = Loop(
            config=self._job.config,
            replicas=self._replicas,
            state=self._state,
            windows=self._windows,
            heldout=self._heldout,
            checkpoints=self._checkpoints,
            metrics=self._metrics,
            stop=self._stop,
            shards=self._job.manifest["train"]["shards"],
        )
        if not loop.run():
            return False, 0.0, 0
        return True, *self._evaluate_fully()

    def _evaluate_fully(self) -> tuple[float, int]:
        share = max(1, self._job.config.batch_size // self._replicas.size)
        loss, tokens = evaluate(self._state.model, self._heldout, self._replicas, count=FULL_WINDOWS, batch_size=share)
        if self._replicas.first:
            self._metrics.add({"step": self._state.step, "eval_loss": loss})
            say(f"step {self._state.step}/{self._job.config.steps}  evaluation loss {loss:.3f} on {tokens:,} tokens")
        return loss, tokens

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
            "eval_loss_before": self._state.eval_loss_before,
            "eval_loss": None,
            "eval_tokens": None,
            "unigram_entropy": self._job.manifest["unigram_entropy"],
            "sample": None,
            "model": None,
            "resumed_from": resumed_from,
        }

    @property
    def _parameters(self) -> int:
        return sum(parameter.numel() for parameter in self._state.model.parameters())

    def _greet(self, resumed_from: int | None) -> None:
        place = f"replica {self._replicas.rank} of {self._replicas.size} on {self._replicas.device}"
        begin = "from the start" if resumed_from is None else f"resumed from step {resumed_from}"
        architecture: Any = self._state.model.config
        model = f"{architecture.model_type} with {self._parameters:,} parameters"
        say(f"{place}: {model}, {self._job.config.steps} steps, {begin}")

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
