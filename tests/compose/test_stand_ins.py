"""The container of the stand-ins passes connections on, says where it is, and ends with what it runs."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.ports import free_pair

NETWORK = "127.0.0.2"  # stands for the container's address in the network of docker-compose


def ask(url: str, patience: float = 60) -> Any:
    """Read JSON from an address, trying again while it does not answer."""
    deadline = time.monotonic() + patience
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as reply:
                return json.loads(reply.read() or b"null")
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


@pytest.fixture
def stand_ins(root: Path, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    environment = os.environ | {
        "PYTHONPATH": str(root / "include"),
        "LOCALCLOUD_ROOT": str(tmp_path),
        "LOCALCLOUD_TRAINER_PYTHON": sys.executable,
    }
    command = [sys.executable, str(root / "docker/stand_ins.py"), "--listen", NETWORK, "--advertise", NETWORK]
    command += ["--vertex-port", str(free_pair()), "--storage-port", str(free_pair())]
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    yield process, tmp_path / ".localcloud/endpoints.json"
    if process.poll() is None:
        process.terminate()
        process.wait(timeout=30)


def wait_for(path: Path) -> Any:
    """Read the JSON of a file once it is there."""
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} was not written"
        time.sleep(0.1)
    return json.loads(path.read_text())


def test_others_reach_the_stand_ins_at_the_addresses_in_the_endpoints_file(
    stand_ins: tuple[subprocess.Popen[bytes], Path],
) -> None:
    process, file = stand_ins
    endpoints = wait_for(file)
    assert endpoints["vertex"].startswith(f"http://{NETWORK}:")
    assert endpoints["logging"] == endpoints["vertex"]
    buckets = ask(f"{endpoints['storage']}/storage/v1/b?project=local-llm")
    assert {bucket["name"] for bucket in buckets["items"]} == {"local-llm-work", "local-llm-models"}
    jobs = ask(f"{endpoints['vertex']}/v1/projects/local-llm/locations/us-central1/customJobs")
    assert jobs.get("customJobs", []) == []
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 0


def test_it_ends_when_a_stand_in_ends_and_leaves_nothing(stand_ins: tuple[subprocess.Popen[bytes], Path]) -> None:
    process, file = stand_ins
    ask(f"{wait_for(file)['vertex']}/v1/projects/local-llm/locations/us-central1/customJobs")
    children = psutil.Process(process.pid).children(recursive=True)
    vertex = next(child for child in children if "localcloud.vertex" in child.cmdline())
    vertex.kill()
    assert process.wait(timeout=30) == 1
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []
