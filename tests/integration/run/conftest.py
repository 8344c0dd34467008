"""The Vertex stand-in beside the real GCS server, one for this folder; each test has a project of its own."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from trainops.settings import Settings

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def vertex_url(gcs_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("vertex")
    port = _free_port()
    command = [sys.executable, "-m", "localcloud.vertex", "--port", str(port), "--state", str(folder / "state")]
    command += ["--storage-endpoint", gcs_url, "--python", sys.executable]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT / "include")
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_up(url, server, folder / "log")
        yield url
    finally:
        server.terminate()
        server.wait(20)


@pytest.fixture
def vertex_settings(settings: Settings, client: Any, vertex_url: str) -> Settings:
    """An environment that reaches both stand-ins; a project of its own keeps tests apart."""
    value = settings.model_dump(by_alias=True)
    value["project"] = f"test-{uuid4().hex[:8]}"
    value["endpoints"] = {"vertex": vertex_url, "storage": settings.endpoints.storage, "logging": vertex_url}
    return Settings.model_validate(value)


@pytest.fixture
def vertex_faults(vertex_url: str) -> Iterator[Callable[..., None]]:
    """Tells the stand-in to misbehave; it behaves again after the test."""

    def tell(kind: str, **details: Any) -> None:
        httpx.post(f"{vertex_url}/faults", json={"kind": kind, **details}).raise_for_status()

    yield tell
    httpx.delete(f"{vertex_url}/faults").raise_for_status()


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_up(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and server.poll() is None:
        try:
            httpx.get(f"{url}/healthz", timeout=1).raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.1)
        else:
            return
    pytest.fail(f"the Vertex stand-in did not come up (exit code {server.poll()}): {log.read_text()[-2000:]}")
