"""`trainops convert` of texts that may hold a job: it prints one or says what is refused, and never fails otherwise."""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from tests.unit.jobspec.random_texts import random_text
from tests.unit.jobspec.real_jobs import FOLDER

from trainops.cli import main

FEW = range(800)
ALL = range(800, 10_000)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that is converted, in a folder without others."""
    monkeypatch.setenv("TRAINOPS_CONFIGS", str(FOLDER))
    monkeypatch.delenv("TRAINOPS_ENVIRONMENT", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "job.yaml"


def _code(file: Path, text: str) -> int:
    """Convert, with streams that take UTF-8 alone, as a terminal does; look at what was printed."""
    file.write_text(text, encoding="utf-8")
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    stderr = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True)
    with redirect_stdout(stdout), redirect_stderr(stderr):
        code = main(["convert", str(file)])
    printed, told = (stream.buffer.getvalue().decode() for stream in (stdout, stderr))
    if code == 0:
        assert {"displayName"} <= set(json.loads(printed))
    else:
        assert printed == ""
        assert "error: " in told or "refused: " in told
    return code


def test_no_text_whatever_gives_a_traceback(file: Path) -> None:
    codes = Counter(_code(file, random_text(random.Random(seed))) for seed in FEW)
    assert set(codes) == {0, 2}
    assert min(codes.values()) > len(FEW) / 50


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_no_text_of_ten_thousand_gives_a_traceback(file: Path) -> None:
    assert {_code(file, random_text(random.Random(seed))) for seed in ALL} == {0, 2}


@pytest.mark.parametrize(
    "text",
    [
        "&a [*a]",
        "trainingInput: &a {vertex: *a}",
        "args: &a [*a]",
        "job: {trainingOutput: &a {b: *a}}",
        "trainingInput: {args: !!set {a, b}}",
        "2026-11-30: x",
        "job: {2026-11-30: x}",
        "job: {trainingOutput: {2026-11-30: x}}",
        "masterConfig: {? [a] : x}",
        "? [a]\n: b",
        "job: {jobId: 2026-11-30}",
        "args: !!binary aGVsbG8=",
        "trainingInput: !!omap [a: b]",
        '{"job": {"trainingOutput": ' + '{"a": ' * 400 + "1" + "}" * 402,
        "workerCount: " + "9" * 5000,
        "workerCount: 0x" + "f" * 4000,
        "vertex: 1:30",
        "gcloud ai-platform jobs submit training j --config " + "a" * 5000,
        "gcloud ai-platform jobs submit training j --config '\x01'",
        "gcloud ai-platform jobs submit training '" + "é" * 300 + "' --region r --master-image-uri i",
    ],
    ids=range(20),
)
def test_a_strange_text_is_refused_in_words(file: Path, text: str) -> None:
    assert _code(file, text) == 2
