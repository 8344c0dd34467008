from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.trainer.results import result
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM, AutoTokenizer

from trainer import loop
from trainer.data import Batch, TrainingWindows
from trainer.evaluation import summed_loss
from trainer.files import Files, join
from trainer.shards import read_tokens

Run = Callable[..., int]
MORE_FAMILIES = ["qwen3", "mistral", "gpt_neox", "mamba"]
VOLATILE = {"time", "tokens_per_second", "mfu", "memory_bytes", "remaining_seconds"} | {
    f"{part}_seconds" for part in ("step", "data", "forward_backward", "communication", "checkpoint")
}


def metrics(folder: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in VOLATILE} for line in lines]


def recomputed(model_folder: Path, tokens: str, context: int) -> tuple[float, int]:
    """The evaluation loss from the files alone, as the contract defines it."""
    manifest = json.loads((Path(tokens) / "manifest.json").read_text())
    stream = np.concatenate([np.fromfile(f"{tokens}/{s['name']}", dtype="<u2") for s in manifest["heldout"]["shards"]])
    model: Any = AutoModelForCausalLM.from_pretrained(model_folder)
    nats, count = 0.0, 0
    for number in range(min(512, (len(stream) - 1) // context)):
        window = torch.tensor(stream[number * context : number * context + context + 1].astype("int64"))
        with torch.no_grad():
            logits = model(input_ids=window[None, :-1]).logits[0]
        nats += float(cross_entropy(logits, window[1:], reduction="sum"))
        count += context
    return nats / count, count


def stop_at(monkeypatch: pytest.MonkeyPatch, step: int, action: Callable[[], object]) -> None:
    """Do `action` when the step before `step` is being logged."""
    original = loop.Loop._log

    def log(self: loop.Loop, *values: float) -> None:
        original(self, *values)
        if self.state.step == step - 1:
            action()

    monkeypatch.setattr(loop.Loop, "_log", log)


def test_a_run_leaves_model_metrics_checkpoints_and_result(
    train: Run, tokens: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(tmp_path, steps=30) == 0

    found = result(tmp_path)
    assert found["status"] == "succeeded"
    assert (found["step"], found["steps"], found["tokens"], found["replicas"]) == (30, 30, 30 * 4 * 32, 1)
    assert found["eval_loss"] < found["eval_loss_before"] - 0.5
    assert found["model"] == str(tmp_path / "model")
    assert found["resumed_from"] is None
    assert found["sample"].startswith("def ")
    assert Files().below(str(tmp_path / "checkpoints")) == [
        f"step-000000{step}/{name}" for step in (27, 30) for name in ("complete.json", "replica-0-of-1.pt")
    ]
    lines = metrics(tmp_path)
    assert [line["step"] for line in lines if "loss" in line] == list(range(1, 31))
    assert [line["step"] for line in lines if "eval_loss" in line] == [0, 4, 8, 12, 16, 20, 24, 28, 30]
    assert re.search(
        r"step 30/30  loss \d\.\d{3}  [\d,]+ tokens/s  learning rate 1\.00e-03  gradient \d+\.\d\d  0:00:00 left",
        capsys.readouterr().out,
    )


def test_every_line_tells_where_the_time_went_and_what_it_took(train: Run, tmp_path: Path) -> None:
    assert train(tmp_path, log_every=4) == 0

    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    first, last = [line for line in lines if "loss" in line]
    assert set(first) == VOLATILE | {"step", "steps", "loss", "learning_rate", "grad_norm"}
    for line in (first, last):
        parts = [line[f"{part}_seconds"] for part in ("data", "forward_backward", "communication")]
        assert all(seconds >= 0 for seconds in parts)
        assert 0 < sum(parts) <= line["step_seconds"]
        assert line["tokens_per_second"] == pytest.approx(4 * 4 * 32 / line["step_seconds"])
        assert line["communication_seconds"] == 0
        # A process with torch loaded holds more than that.
        assert line["memory_bytes"] > 50_000_000
        assert line["mfu"] is None
    # Checkpoints are saved after steps 3 and 6; neither is in the time of the steps.
    assert first["checkpoint_seconds"] > 0
    assert last["checkpoint_seconds"] > 0
    assert (first["remaining_seconds"], last["remaining_seconds"]) == (pytest.approx(first["step_seconds"]), 0)


@pytest.mark.parametrize(
    "family", ["llama", "gpt2", "qwen2", *(pytest.param(name, marks=pytest.mark.full) for name in MORE_FAMILIES)]
)
def test_the_exported_folder_reloads_and_gives_the_reported_loss(
    family: str, train: Run, tokens: str, tmp_path: Path
) -> None:
    assert train(tmp_path, "--model_dir", str(tmp_path / "elsewhere"), model={"family": family}) == 0

    loss, count = recomputed(tmp_path / "elsewhere", tokens, context=32)
    assert loss == pytest.approx(result(tmp_path)["eval_loss"], abs=1e-4)
    assert count == result(tmp_path)["eval_tokens"]
    exported: Any = AutoTokenizer.from_pretrained(tmp_path / "elsewhere")
    original: Any = AutoTokenizer.from_pretrained(f"{tokens}/tokenizer")
    text = "def f(x):\n    return x  # \u00e9\u4e2d"
    assert exported(text)["input_ids"] == original(text)["input_ids"]
    assert exported.decode(exported(text)["input_ids"]) == text


@pytest.mark.case("C087")
@pytest.mark.parametrize("model", [{"family": "llama"}, {"family": "gpt2", "dropout": 0.2}], ids=["llama", "dropout"])
def test_a_preempted_run_goes_on_with_the_same_losses_bit_for_bit(
    model: dict[str, Any], train: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = tmp_path / "control"
    assert train(tmp_path / "whole", model=model) == 0

    with monkeypatch.context() as patch:
        patch.setenv("TRAINOPS_CONTROL_URI", str(control))
        stop_at(patch, 5, lambda: os.kill(os.getpid(), signal.SIGTERM))
        assert train(tmp_path / "parts", model=model) == 0
    assert result(tmp_path / "parts")["status"] == "preempted"
    assert json.loads((control / "preempted").read_text()) == {"step": 5}
    assert not (tmp_path / "parts" / "model").exists()
    assert train(tmp_path / "parts", model=model) == 0

    whole, parts = result(tmp_path / "whole"), result(tmp_path / "parts")
    assert metrics(tmp_path / "parts") == metrics(tmp_path / "whole")
    assert parts["resumed_from"] == 5
    same = ("step", "tokens", "eval_loss", "eval_loss_before", "sample")
    assert {key: parts[key] for key in same} == {key: whole[key] for key in same}


def test_a_preempt_object_in_the_bucket_stops_the_run(
    train: Run, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = join(bucket, tmp_path.name, "control")
    monkeypatch.setenv("TRAINOPS_CONTROL_URI", control)
    stop_at(monkeypatch, 3, lambda: Files().write_json(join(control, "preempt"), {}))
    started = time.monotonic()

    assert train(tmp_path, steps=100_000, eval_every=0, checkpoint_every=0, log_every=1) == 0

    assert time.monotonic() - started < 30
    marker = Files().read_json(join(control, "preempted"))
    assert marker == {"step": result(tmp_path)["step"]}
    assert result(tmp_path)["status"] == "preempted"


def test_a_run_on_a_bucket_leaves_the_same_objects(
    bucket: str, tokens: str, make_plan: Callable[..., str], tmp_path: Path
) -> None:
    from trainer.task import main

    folder, place = join(bucket, tmp_path.name), join(bucket, tmp_path.name, "tokens")
    Files().upload_folder(Path(tokens) / "tokenizer", join(place, "tokenizer"))
    for path in Path(tokens).glob("*.*"):
        Files().write(join(place, path.name), path.read_bytes())

    plan = join(place, "plan.json")
    Files().write(plan, Path(make_plan()).read_bytes())

    assert main(["--config", plan, "--tokens", place, "--job-dir", folder + "/"]) == 0

    assert Files().names(folder) == ["metrics.jsonl", "result.json"]
    assert Files().below(join(folder, "checkpoints")) == [
        f"step-0000000{step}/{name}" for step in (6, 8) for name in ("complete.json", "replica-0-of-1.pt")
    ]
    assert {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"} <= set(
        Files().names(join(folder, "model"))
    )


def test_a_finished_run_started_again_gives_the_same_result(train: Run, tmp_path: Path) -> None:
    assert train(tmp_path) == 0
    first, lines = result(tmp_path), metrics(tmp_path)

    assert train(tmp_path) == 0

    assert result(tmp_path) == {**first, "resumed_from": 8}
    assert metrics(tmp_path) == lines


def test_a_corrupt_newest_checkpoint_costs_only_the_steps_since_the_one_before(
    train: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(tmp_path) == 0
    expected = metrics(tmp_path)
    newest = tmp_path / "checkpoints" / "step-00000008" / "replica-0-of-1.pt"
    newest.write_bytes(newest.read_bytes()[:1000])

    assert train(tmp_path) == 0

    assert "step-00000008 is corrupt (replica-0-of-1.pt: " in capsys.readouterr().out
    assert result(tmp_path)["resumed_from"] == 6
    assert metrics(tmp_path) == expected


def test_a_diverging_run_stops_at_once_and_is_never_tried_again(
    train: Run, tokens: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def infinite_from_step_3(model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        calls.append(1)
        return summed_loss(model, batch) * (1.0 if len(calls) < 3 else float("inf"))

    calls: list[int] = []
    monkeypatch.setattr("trainer.replicated.summed_loss", infinite_from_step_3)

    assert train(tmp_path) == 2

    told = capsys.readouterr().err
    assert "step 3: the loss is inf" in told
    manifest = json.loads((Path(tokens) / "manifest.json").read_text())
    stream = read_tokens(Files(), tokens, manifest, "train")
    starts = TrainingWindows(stream, context=32, seed=0).starts(8, 12)
    places = ", ".join(map(str, sorted(starts)))
    assert "sequences 8 to 11 of the order of trainer.seed 0, windows of 32 + 1 tokens in" in told
    assert f"train-00000.bin at tokens {places}\n" in told
    assert [line["step"] for line in metrics(tmp_path)] == [0, 1, 2]
    assert not (tmp_path / "result.json").exists()


def test_a_checkpoint_of_another_model_is_refused(
    train: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(tmp_path) == 0

    assert train(tmp_path, model={"layers": 3}) == 2

    assert "the checkpoint is of another model" in capsys.readouterr().err


def test_tokens_that_are_not_there_are_the_users_error(
    make_plan: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from trainer.task import main

    assert main(["--config", make_plan(), "--tokens", str(tmp_path), "--job-dir", str(tmp_path / "job")]) == 2

    assert capsys.readouterr().err.endswith("no such object; run python -m trainer.tokenize first\n")
