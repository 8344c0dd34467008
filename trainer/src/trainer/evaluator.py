"""The evaluator: a replica that does not train, and evaluates each checkpoint as it appears."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import torch
import torch.distributed as dist

from trainer.checkpoints import Checkpoints, Gone
from trainer.cluster import Cluster
from trainer.console import say
from trainer.data import HeldOutWindows
from trainer.errors import TrainerError
from trainer.evaluation import FULL_WINDOWS, evaluate
from trainer.files import Files, join
from trainer.heartbeat import SILENCE_SECONDS, check_listening, connect, ended, heartbeat_key
from trainer.job import Job
from trainer.layout import layout_of
from trainer.pieces import Piece
from trainer.pretrained import first_model
from trainer.replicas import MEETING_TIMEOUT, Replicas
from trainer.shards import read_mask, read_tokens
from trainer.stopping import StopRequest

LOOK_SECONDS = 2.0
"""Between two looks for new checkpoints."""


class Evaluator:
    """Evaluates checkpoints until the training is over, or this process is asked to stop."""

    def __init__(self, files: Files, job: Job, cluster: Cluster, stop: StopRequest) -> None:
        self._files = files
        self._job = job
        self._stop = stop
        self._training = WatchedTraining(cluster)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._alone = Replicas(0, 1, device)
        heldout = read_tokens(files, job.tokens, job.manifest, "heldout")
        mask = read_mask(files, job.tokens, job.manifest, "heldout")
        self._heldout = HeldOutWindows(heldout, job.config.model.context, mask)
        self._model = first_model(files, job).to(device)
        layout = layout_of(self._model)
        self._checkpoints = Checkpoints(files, join(job.folder, "checkpoints"), layout)
        parameters = dict(self._model.named_parameters())
        self._weights = [
            Piece("weight", name, 0, parameters[name].numel(), parameters[name].detach().view(-1))
            for name in layout.shapes
        ]
        self._lines: list[dict[str, Any]] = []

    def run(self) -> None:
        """Evaluate, and append to `evaluations.jsonl`; end after the last step, or when nobody trains any more."""
        say("evaluator: waiting for checkpoints")
        stored = (self._files.read(self._uri) or b"").split(b"\n")
        self._lines = [json.loads(line) for line in stored if line.strip()]
        while not self._stop.asked:
            # In this order: what was saved before the end is evaluated, too.
            over = self._training.over()
            self._evaluate_new()
            if over:
                say(f"evaluator: done, the training is over: {over}")
                return
            self._stop.wait(LOOK_SECONDS)

    @property
    def _uri(self) -> str:
        return join(self._job.folder, "evaluations.jsonl")

    def _evaluate_new(self) -> None:
        for step in self._checkpoints.steps():
            record, problem = self._checkpoints.record(step)
            # Of a step that a resumed run took again there is a new checkpoint.
            if problem or any(line["checkpoint"] == record["id"] for line in self._lines):
                continue
            self._checkpoints.check_model(record)
            try:
                self._checkpoints.load(step, record, self._weights)
            except Gone:
                say(f"warning: the checkpoint of step {step} was deleted before it was evaluated")
                continue
            self._add(step, record["id"])

    def _add(self, step: int, checkpoint: str) -> None:
        config = self._job.config
        # The same windows as the workers': all after the last step.
        count = FULL_WINDOWS if step >= config.steps else config.eval_batches * config.batch_size
        loss, tokens = evaluate(self._model, self._heldout, self._alone, count=count, batch_size=config.batch_size)
        moment = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"step": step, "eval_loss": loss, "eval_tokens": tokens, "checkpoint": checkpoint, "time": moment}
        self._lines = [old for old in self._lines if old["step"] != step] + [line]
        self._files.write(self._uri, "".join(json.dumps(item) + "\n" for item in self._lines).encode())
        say(f"step {step}/{config.steps}  evaluation loss {loss:.3f} on {tokens:,} tokens")


class WatchedTraining:
    """The training that is evaluated, as its first replica's heartbeat shows it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._store: Any = None
        self._word = b""
        self._heard = 0.0

    def over(self) -> str | None:
        """Say why the training is over; None while it goes on, or before it began.

        :raises TrainerError: when it does not begin within MEETING_TIMEOUT.
        """
        if self._store is None:
            self._store = self._meet()
        try:
            check_listening(self._cluster)
            word = self._store.get(heartbeat_key(0))
        except (ConnectionError, dist.DistError, RuntimeError):
            return f"nobody listens at {self._cluster.name(0)} any more"
        now = time.monotonic()
        if word != self._word:
            self._word, self._heard = word, now
        if ended(word):
            return f"{self._cluster.name(0)} has ended"
        if now - self._heard > SILENCE_SECONDS:
            return f"no word of {self._cluster.name(0)} for {now - self._heard:.0f} s"
        return None

    def _meet(self) -> Any:
        try:
            store = connect(self._cluster, MEETING_TIMEOUT)
            store.get(heartbeat_key(0))
            store.set_timeout(timedelta(seconds=10))
        except (dist.DistError, RuntimeError) as error:
            raise TrainerError(
                f"evaluator: {self._cluster.name(0)} did not begin to train: {str(error).splitlines()[0]}"
            ) from error
        self._heard = time.monotonic()
        return store
