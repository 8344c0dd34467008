"""Datasets that share parts share the tokens of those parts, where the tokenizer is named."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trainer.corpus import Corpus, Document
from trainer.files import Files, crc32c, resolve
from trainer.shards import read_manifest, read_mask, read_tokens
from trainer.tokenize import main

Documents = list[dict[str, str]]
MakePlan = Callable[..., str]


@pytest.fixture
def stage_parts(tmp_path: Path) -> Callable[..., str]:
    """Writes days of documents as parts, and a dataset of them; `skip` are the places left out of the last day."""

    def write(name: str, days: list[Documents], skip: tuple[int, ...] = ()) -> str:
        folder = tmp_path / "datasets"
        (folder / "parts").mkdir(parents=True, exist_ok=True)
        shards: list[dict[str, Any]] = []
        for day in days:
            data = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in day).encode()
            part = f"{hashlib.sha256(data).hexdigest()[:32]}.jsonl"
            (folder / "parts" / part).write_bytes(data)
            entry = {"name": f"../parts/{part}", "bytes": len(data), "crc32c": crc32c(data), "documents": len(day)}
            shards.append(entry)
        if skip:
            shards[-1] |= {"skip": list(skip), "documents": len(days[-1]) - len(skip)}
        (folder / name).mkdir()
        manifest = {"schema": 2, "dataset": "small", "sha16": name, "shards": shards}
        (folder / name / "manifest.json").write_text(json.dumps(manifest))
        return str(folder / name)

    return write


def made(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("parts/**/*.bin")}


def all_tokens(folder: str, split: str) -> list[int]:
    return list(map(int, read_tokens(Files(), folder, read_manifest(Files(), folder), split)))


def test_a_day_that_is_added_is_the_only_one_that_is_tokenized(
    stage_parts: Callable[..., str], documents: Documents, tokens: str, make_plan: MakePlan, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    days = [documents[:20], documents[20:40], documents[40:]]
    plan = make_plan(tokenizer={"init_from": f"{tokens}/tokenizer", "vocab_size": 2048})
    out = tmp_path / "tokens"
    assert main(["--dataset", stage_parts("two", days[:2]), "--output", f"{out}/two", "--config", plan]) == 0
    before = made(out)
    capsys.readouterr()
    assert main(["--dataset", stage_parts("three", days), "--output", f"{out}/three", "--config", plan]) == 0

    assert "1 parts are new, 2 were there" in capsys.readouterr().out
    after = made(out)
    assert len(after) == len(before) + 1 == 3
    assert before.items() <= after.items()
    # The tokens are those of the documents tokenized at once, by the same tokenizer.
    whole = tmp_path / "whole"
    data = [*days[0], *days[1], *days[2]]
    assert main(["--dataset", stage_parts("whole", [data]), "--output", f"{whole}/all", "--config", plan]) == 0
    assert all_tokens(f"{whole}/all", "train") == all_tokens(f"{out}/three", "train")
    assert all_tokens(f"{whole}/all", "heldout") == all_tokens(f"{out}/three", "heldout")
    manifests = [read_manifest(Files(), folder) for folder in (f"{whole}/all", f"{out}/three")]
    for key in ("unigram_entropy", "bytes_per_token", "vocab_size", "dtype", "end_of_text"):
        assert manifests[0][key] == manifests[1][key]


def test_pairs_in_parts_keep_their_masks(
    stage_parts: Callable[..., str], pairs: Documents, tokens: str, make_plan: MakePlan, tmp_path: Path
) -> None:
    rows = [{"id": "0" * 16, "source": f"x:{n}", "text": json.dumps(pair)} for n, pair in enumerate(pairs)]
    plan = make_plan(tokenizer={"init_from": f"{tokens}/tokenizer", "vocab_size": 2048, "documents": "pairs"})
    folder = str(tmp_path / "tokens" / "pairs")
    assert main(["--dataset", stage_parts("pairs", [rows[:50], rows[50:]]), "--output", folder, "--config", plan]) == 0
    manifest = read_manifest(Files(), folder)
    for split in ("train", "heldout"):
        mask = read_mask(Files(), folder, manifest, split)
        assert mask is not None
        assert len(mask) == manifest[split]["tokens"]
        assert 0 < int(np.sum(mask)) < len(mask)


def test_what_the_manifest_leaves_out_is_no_document(stage_parts: Callable[..., str], documents: Documents) -> None:
    folder = stage_parts("skipping", [documents[:5], [documents[0], documents[6], documents[1]]], skip=(0, 2))
    read = [document.id for shard in Corpus(Files(), folder).shards() for document in shard]
    assert read == [item["id"] for item in [*documents[:5], documents[6]]]


def test_a_text_that_comes_twice_is_held_out_twice_or_never(
    stage_parts: Callable[..., str], documents: Documents, tokens: str, make_plan: MakePlan, tmp_path: Path
) -> None:
    days = [documents[:30], [{**item, "source": "copy"} for item in documents[10:30]] + documents[30:]]
    plan = make_plan(tokenizer={"init_from": f"{tokens}/tokenizer", "vocab_size": 2048})
    folder = str(tmp_path / "tokens" / "twice")
    assert main(["--dataset", stage_parts("twice", days), "--output", folder, "--config", plan]) == 0
    end = read_manifest(Files(), folder)["end_of_text"]
    split = {}
    for name in ("train", "heldout"):
        found = np.array(all_tokens(folder, name))
        split[name] = {tuple(part.tolist()) for part in np.split(found, np.flatnonzero(found == end) + 1)[:-1]}
    assert split["train"]
    assert split["heldout"]
    assert not split["train"] & split["heldout"]
    held = [item for day in days for item in day if Document(item["id"], item["text"]).held_out(0.2)]
    assert read_manifest(Files(), folder)["heldout"]["documents"] == len(held)


@pytest.mark.parametrize(
    ("folder", "name", "found"),
    [
        ("gs://b/tokens/a", "x.bin", "gs://b/tokens/a/x.bin"),
        ("gs://b/tokens/a/", "../parts/x.bin", "gs://b/tokens/parts/x.bin"),
        ("/d/a", "../../x", "/x"),
    ],
)
def test_a_name_may_lead_to_the_folder_above(folder: str, name: str, found: str) -> None:
    assert resolve(folder, name) == found
