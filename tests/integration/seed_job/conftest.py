"""The Vertex stand-in of this folder, whose replicas run in the trainer's environment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def vertex_url(start_vertex: Callable[[Path], str]) -> str:
    python = ROOT / ".venv-trainer" / "bin" / "python"
    if not python.exists():
        pytest.skip("needs the trainer's environment .venv-trainer: make setup")
    return start_vertex(python)
