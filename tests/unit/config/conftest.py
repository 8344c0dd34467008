"""A copy of the project's configs that a test may break."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainops.settings import project_root

Change = Callable[..., Path]


@pytest.fixture
def configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of configs, a copy."""
    folder = tmp_path / "configs"
    shutil.copytree(project_root() / "include" / "configs", folder)
    monkeypatch.setenv("TRAINOPS_CONFIGS", str(folder))
    monkeypatch.delenv("TRAINOPS_ENVIRONMENT", raising=False)
    return folder


@pytest.fixture
def change(configs: Path) -> Change:
    """Change keys of a config file by dotted path (None removes the key), and return the file's path."""

    def changed(file: str, changes: dict[str, Any]) -> Path:
        path = configs / file
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        for dotted, value in changes.items():
            *parents, last = dotted.split(".")
            place = data
            for parent in parents:
                place = place[parent]
            if value is None:
                del place[last]
            else:
                place[last] = value
        path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
        return path

    return changed
