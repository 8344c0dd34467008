"""The Vertex stand-in, one for this folder; each test has a project of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest


@pytest.fixture(scope="session")
def vertex_url(start_vertex: Callable[[Path], str]) -> str:
    return start_vertex(Path(sys.executable))


@pytest.fixture
def vertex_faults(vertex_url: str) -> Iterator[Callable[..., None]]:
    """Tells the stand-in to misbehave; it behaves again after the test."""

    def tell(kind: str, **details: Any) -> None:
        httpx.post(f"{vertex_url}/faults", json={"kind": kind, **details}).raise_for_status()

    yield tell
    httpx.delete(f"{vertex_url}/faults").raise_for_status()
