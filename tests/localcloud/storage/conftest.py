from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage
from tests.ports import free_port

from localcloud.catalogue import gcs_command, storage_command
from localcloud.process import Process

BUCKET = "local-llm-work"
anonymous: Any = AnonymousCredentials


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real fake-gcs-server behind the real proxy, each a process as the supervisor runs them."""
    folder = tmp_path_factory.mktemp("storage")
    server_port, port = free_port(), free_port()
    url = f"http://127.0.0.1:{port}"
    environment = {"PYTHONPATH": str(Path(__file__).parents[3] / "include")}
    processes = [
        Process.start(gcs_command(folder / "objects", server_port, url), environment, folder, folder / "server.log"),
        Process.start(
            storage_command(port, server_port, folder / "journal.jsonl"), environment, folder, folder / "proxy.log"
        ),
    ]
    client = httpx.Client(trust_env=False)
    try:
        for _ in range(200):
            try:
                if client.get(f"{url}/healthz").is_success:
                    break
            except httpx.HTTPError:
                pass
            processes[1].wait(0.1)
        yield url
    finally:
        client.close()
        for process in reversed(processes):
            process.ask_to_end()
            process.end(grace_seconds=5)


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", endpoint)
    library: Any = storage  # it has no type hints
    client = library.Client(project="local-llm", credentials=anonymous())
    yield client.bucket(BUCKET)
    httpx.delete(f"{endpoint}/faults").raise_for_status()
    client.close()
