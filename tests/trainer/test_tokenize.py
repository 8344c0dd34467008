from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AutoTokenizer

import trainer
from trainer.corpus import Document
from trainer.files import Files
from trainer.shards import read_tokens, token_type
from trainer.tokenize import main

Documents = list[dict[str, str]]


def contents(folder: str) -> dict[str, bytes]:
    root = Path(folder)
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def read_split(folder: str, split: str) -> tuple[dict[str, Any], list[str]]:
    manifest = json.loads((Path(folder) / "manifest.json").read_text())
    tokens = read_tokens(Files(), folder, manifest, split)
    tokenizer: Any = AutoTokenizer.from_pretrained(f"{folder}/tokenizer")
    ends = np.flatnonzero(tokens == manifest["end_of_text"])
    return manifest, [tokenizer.decode(part[part != 0].tolist()) for part in np.split(tokens, ends + 1)[:-1]]


def test_the_splits_hold_every_document_as_it_was(tokens: str, documents: Documents) -> None:
    texts = {item["id"]: item["text"] for item in documents}
    held = {key: text for key, text in texts.items() if Document(key, text).held_out(0.2)}

    manifest, heldout = read_split(tokens, "heldout")
    _, train = read_split(tokens, "train")

    assert heldout == [held[key] for key in sorted(held)]
    assert sorted(train) == sorted(text for key, text in texts.items() if key not in held)
    assert manifest["train"]["documents"] + manifest["heldout"]["documents"] == len(documents)


def test_the_manifest_tells_the_entropy_of_the_held_out_tokens(tokens: str) -> None:
    manifest = json.loads((Path(tokens) / "manifest.json").read_text())
    heldout = read_tokens(Files(), tokens, manifest, "heldout")
    shares = np.bincount(heldout) / len(heldout)

    expected = -sum(share * np.log(share) for share in shares if share)
    assert manifest["unigram_entropy"] == pytest.approx(expected)
    assert manifest["heldout"]["tokens"] == len(heldout)
    assert manifest["vocab_size"] == 400
    assert 1.0 < manifest["bytes_per_token"] < 5.0


def test_a_second_run_does_nothing_and_says_so(
    tokens: str, dataset: str, make_plan: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(tokens)

    assert main(["--dataset", dataset, "--output", tokens, "--config", make_plan()]) == 0

    assert "nothing to do" in capsys.readouterr().out
    assert contents(tokens) == before


def test_the_same_dataset_gives_the_same_bytes(
    tokens: str, dataset: str, make_plan: Callable[..., str], tmp_path: Path
) -> None:
    assert main(["--dataset", dataset, "--output", str(tmp_path), "--config", make_plan()]) == 0

    assert contents(str(tmp_path)) == contents(tokens)


def test_the_split_is_stable_when_documents_are_added(documents: Documents) -> None:
    def held(some: Documents) -> set[str]:
        return {item["id"] for item in some if Document(item["id"], item["text"]).held_out(0.2)}

    assert held(documents[:30]) == held(documents) & {item["id"] for item in documents[:30]}


def test_a_corrupt_shard_is_refused_and_named(
    stage: Callable[[Path, Documents], str],
    documents: Documents,
    make_plan: Callable[..., str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = stage(tmp_path / "dataset", documents)
    path = tmp_path / "dataset" / "shard-00001.jsonl"
    path.write_bytes(path.read_bytes().replace(b"import", b"imporT", 1))

    assert main(["--dataset", folder, "--output", str(tmp_path / "out"), "--config", make_plan()]) == 2

    assert "shard-00001.jsonl: corrupt" in capsys.readouterr().err
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_a_dataset_too_small_to_split_is_refused(
    stage: Callable[[Path, Documents], str],
    documents: Documents,
    make_plan: Callable[..., str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kept = [item for item in documents if not Document(item["id"], item["text"]).held_out(0.2)]
    folder = stage(tmp_path / "dataset", kept[:2])

    assert main(["--dataset", folder, "--output", str(tmp_path / "out"), "--config", make_plan()]) == 2

    assert "makes 2 documents to train on and 0 held out" in capsys.readouterr().err


def test_documents_may_hold_every_line_separator(
    stage: Callable[[Path, Documents], str], documents: Documents, make_plan: Callable[..., str], tmp_path: Path
) -> None:
    odd = {"id": "0" * 16, "source": "odd", "text": "a\u2028b\x85c\r\nd\x0ce \U0001f600 \ufeff<s>"}
    folder = stage(tmp_path / "dataset", [*documents[:20], odd])

    assert main(["--dataset", folder, "--output", str(tmp_path / "out"), "--config", make_plan()]) == 0

    _, heldout = read_split(str(tmp_path / "out"), "heldout")
    assert heldout[0] == odd["text"]


def test_a_dataset_that_is_not_staged_is_the_users_error(
    make_plan: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--dataset", str(tmp_path), "--output", str(tmp_path / "out"), "--config", make_plan()]) == 2

    assert "the dataset is not staged" in capsys.readouterr().err


def test_tokens_of_large_vocabularies_take_four_bytes() -> None:
    assert (token_type(65_536), token_type(65_537)) == ("uint16", "uint32")


def test_tokens_are_made_without_torch_which_takes_longer_to_load_than_a_small_dataset_to_tokenize(
    dataset: str, make_plan: Callable[..., str], tmp_path: Path
) -> None:
    arguments = ["--dataset", dataset, "--output", str(tmp_path), "--config", make_plan()]
    code = f"import sys; from trainer.tokenize import main; main({arguments}); print('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(Path(trainer.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "False", done.stderr
