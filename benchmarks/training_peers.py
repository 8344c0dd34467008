"""The loops that the trainer is measured beside; each prints the seconds of its steps as JSON.

`python -m benchmarks.training_peers LOOP TOKENS STEPS`, in the trainer's environment.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from benchmarks.training_speed import BATCH, MODEL
from torch.nn.functional import cross_entropy

from trainer.config import ModelConfig
from trainer.data import TrainingWindows
from trainer.files import Files
from trainer.model import build_model
from trainer.shards import read_tokens

RATE = 0.003


def main(loop: str, folder: str, steps: int) -> None:
    """Take the steps."""
    manifest = json.loads((Path(folder) / "manifest.json").read_text())
    config = ModelConfig(**MODEL)  # type: ignore[arg-type]  # its values are of many types
    windows = TrainingWindows(read_tokens(Files(), folder, manifest, "train"), config.context, seed=0)
    model = build_model(config, vocab_size=manifest["vocab_size"], end_of_text=manifest["end_of_text"], seed=0)
    run = bare if loop == "bare torch loop" else by_transformers
    print(json.dumps(run(model, windows, steps)))


def bare(model: torch.nn.Module, windows: TrainingWindows, steps: int) -> list[float]:
    """What is left when nothing is measured, saved, logged or agreed."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    seconds = []
    for step in range(steps):
        began = time.monotonic()
        batch = windows.read(step * BATCH, (step + 1) * BATCH)
        logits: Any = model(input_ids=batch.inputs, use_cache=False).logits
        loss = cross_entropy(logits.flatten(0, 1), batch.targets.flatten())
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.monotonic() - began)
    return seconds


def by_transformers(model: torch.nn.Module, windows: TrainingWindows, steps: int) -> list[float]:
    """`transformers.Trainer` with the same optimizer, no checkpoints, and a line of log for every ten steps."""
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Clock(TrainerCallback):
        def __init__(self) -> None:
            self.moments: list[float] = []

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            self.moments.append(time.monotonic())

    class Sequences(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
        def __len__(self) -> int:
            return steps * BATCH

        def __getitem__(self, number: int) -> dict[str, torch.Tensor]:
            inputs = windows.read(number, number + 1).inputs[0]
            return {"input_ids": inputs, "labels": inputs}

    clock = Clock()
    arguments = TrainingArguments(
        output_dir="unused", max_steps=steps, per_device_train_batch_size=BATCH, learning_rate=RATE,
        weight_decay=0.1, adam_beta2=0.95, max_grad_norm=1.0, optim="adamw_torch_fused", logging_steps=10,
        save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True, dataloader_pin_memory=False,
    )  # fmt: skip
    trainer: Any = Trainer(model=model, args=arguments, train_dataset=Sequences(), callbacks=[clock])
    trainer.train()
    moments = [*clock.moments, time.monotonic()]
    return [later - earlier for earlier, later in itertools.pairwise(moments)]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
