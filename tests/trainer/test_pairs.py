"""Supervised fine-tuning: the loss counts the responses alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from trainer.corpus import read_pairs
from trainer.errors import UserError
from trainer.files import Files
from trainer.shards import locate, read_manifest, read_mask, read_tokens

MakePlan = Callable[..., str]


def read(folder: str, split: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    manifest = read_manifest(Files(), folder)
    mask = read_mask(Files(), folder, manifest, split)
    assert mask is not None
    return read_tokens(Files(), folder, manifest, split), mask


def test_the_mask_counts_each_response_and_its_end(pair_tokens: str, pairs: list[dict[str, str]]) -> None:
    tokenizer: Any = AutoTokenizer.from_pretrained(f"{pair_tokens}/tokenizer")
    found = []
    for split in ("train", "heldout"):
        tokens, mask = read(pair_tokens, split)
        for part in np.split(np.arange(len(tokens)), np.flatnonzero(tokens == 0) + 1)[:-1]:
            learnt = mask[part].astype(bool)
            found.append({
                "prompt": tokenizer.decode(tokens[part[~learnt]].tolist()),
                "response": tokenizer.decode(tokens[part[learnt]].tolist()).removesuffix("<|endoftext|>"),
            })
            assert tokens[part[-1]] == 0
            assert learnt[-1]

    def order(pair: dict[str, str]) -> str:
        return pair["prompt"]

    assert sorted(found, key=order) == sorted(pairs, key=order)


def test_each_pair_is_held_out_by_itself(pair_tokens: str, pairs: list[dict[str, str]]) -> None:
    manifest = read_manifest(Files(), pair_tokens)

    assert manifest["train"]["documents"] + manifest["heldout"]["documents"] == len(pairs)
    assert 10 < manifest["heldout"]["documents"] < 60


def test_the_losses_are_those_computed_by_hand(pair_tokens: str, make_plan: MakePlan, tmp_path: Path) -> None:
    from trainer.task import main

    plan = make_plan(learning_rate=1e-9, steps=3, eval_every=0, sample_prompt="What is 1 + 1?\n")
    assert main(["--config", plan, "--tokens", pair_tokens, "--job-dir", str(tmp_path)]) == 0

    model: Any = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    nats, count = by_hand(model, *read(pair_tokens, "heldout"))
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["eval_loss"] == pytest.approx(nats / count, abs=1e-4)
    assert result["eval_tokens"] == count

    # At this learning rate the weights are those of the start, so the loss of the first batch can be had afterwards.
    from trainer.data import TrainingWindows

    tokens, mask = read(pair_tokens, "train")
    starts = TrainingWindows(tokens, context=32, seed=0).starts(0, 4)
    parts = [by_hand(model, tokens[start : start + 33], mask[start : start + 33]) for start in starts]
    expected = sum(part[0] for part in parts) / sum(part[1] for part in parts)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert next(line["loss"] for line in lines if "loss" in line) == pytest.approx(expected, abs=1e-4)


def by_hand(model: Any, tokens: np.ndarray[Any, Any], mask: np.ndarray[Any, Any]) -> tuple[float, int]:
    """Nats of the counted tokens, and how many they are, from the probabilities one by one."""
    nats, count = 0.0, 0
    for start in range(0, len(tokens) - 32, 32):
        window = tokens[start : start + 33].astype(np.int64)
        with torch.no_grad():
            probabilities = model(input_ids=torch.tensor(window[None, :-1])).logits[0].double().softmax(-1).numpy()
        for place in range(32):
            if mask[start + place + 1]:
                nats -= float(np.log(probabilities[place, window[place + 1]]))
                count += 1
    return nats, count


def test_tuning_learns_the_responses(pair_tokens: str, make_plan: MakePlan, tmp_path: Path) -> None:
    from trainer.task import main

    assert main(["--config", make_plan(steps=60), "--tokens", pair_tokens, "--job-dir", str(tmp_path)]) == 0

    result = json.loads((tmp_path / "result.json").read_text())
    assert result["eval_loss"] < result["unigram_entropy"] < result["eval_loss_before"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"sums\.jsonl: line 2: not JSON"),
        ("[]", r"sums\.jsonl: line 2: expected \{.*\}, got \[\]"),
        ('{"prompt": "a", "reponse": "b"}', r"line 2: reponse: unknown key; allowed: .*did you mean 'response'\?"),
        ('{"prompt": "a"}', "line 2: prompt and response must be text"),
        ('{"prompt": "a", "response": ""}', "line 2: .*response not empty"),
        ('{"prompt": 1, "response": "b"}', "line 2: prompt and response must be text"),
    ],
)
def test_a_line_that_is_no_pair_is_refused_and_named(line: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        list(read_pairs('{"prompt": "a", "response": "b"}\n' + line + "\n", "sums.jsonl"))


def test_a_corrupt_mask_is_refused(pair_tokens: str, tmp_path: Path) -> None:
    manifest = read_manifest(Files(), pair_tokens)
    name = manifest["train"]["shards"][0]["mask"]["name"]
    data = (Path(pair_tokens) / name).read_bytes()
    (tmp_path / name).write_bytes(bytes([1 - data[0]]) + data[1:])

    with pytest.raises(UserError, match=r"train-00000\.mask: corrupt"):
        read_mask(Files(), str(tmp_path), manifest, "train")


def test_positions_are_told_by_shard() -> None:
    shards = [{"name": "train-00000.bin", "tokens": 10}, {"name": "train-00001.bin", "tokens": 5}]

    assert locate(shards, [12, 9, 0, 10]) == "train-00000.bin at tokens 0, 9; train-00001.bin at tokens 0, 2"
