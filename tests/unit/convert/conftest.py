"""`trainops convert` as a test calls it."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trainops.cli import main
from trainops.settings import project_root

Convert = Callable[..., tuple[int, str, str]]


@pytest.fixture
def configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("TRAINOPS_ENVIRONMENT", raising=False)
    folder = tmp_path / "configs"
    shutil.copytree(project_root() / "include" / "configs", folder)
    monkeypatch.setenv("TRAINOPS_CONFIGS", str(folder))
    return folder


@pytest.fixture
def convert(
    configs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Convert:
    """Convert a text that lies in a file, or comes from stdin when the file is `-`."""

    def run(text: str, *options: str, file: str = "job.yaml") -> tuple[int, str, str]:
        if file == "-":
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
            code = main(["convert", "-", *options])
        else:
            (tmp_path / file).write_text(text, encoding="utf-8")
            code = main(["convert", str(tmp_path / file), *options])
        return code, *capsys.readouterr()

    return run
