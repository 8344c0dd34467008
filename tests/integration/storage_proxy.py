"""The proxy of the storage stand-in, in front of the tests' GCS server: it can be told to misbehave."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from tests.ports import free_port

INCLUDE = Path(__file__).resolve().parents[2] / "include"


class StorageProxy:
    """The proxy at `url`."""

    def __init__(self, url: str) -> None:
        self.url = url

    def fault(self, **fault: Any) -> str:
        """Arm a fault and return its id."""
        return str(httpx.post(f"{self.url}/faults", json=fault).raise_for_status().json()["id"])

    def armed(self) -> list[dict[str, Any]]:
        """The faults that have not struck as often as they shall."""
        faults: list[dict[str, Any]] = httpx.get(f"{self.url}/faults").raise_for_status().json()
        return faults

    def behave(self) -> None:
        """Forget all faults."""
        httpx.delete(f"{self.url}/faults").raise_for_status()

    def journal(self, operation: str) -> list[dict[str, Any]]:
        """The requests that did so."""
        entries: list[dict[str, Any]] = httpx.get(f"{self.url}/journal").json()
        return [entry for entry in entries if entry["operation"] == operation]

    def is_up(self) -> bool:
        """Whether it answers, and the server behind it too."""
        try:
            return httpx.get(f"{self.url}/healthz").is_success
        except httpx.TransportError:
            return False


@contextmanager
def storage_proxy(gcs_url: str, folder: Path) -> Generator[StorageProxy]:
    """Run the proxy while the block runs; its journal and log lie in `folder`."""
    port = free_port()
    command = [sys.executable, "-m", "localcloud.storage", "--port", str(port), "--upstream", gcs_url]
    command += ["--journal", str(folder / "journal.jsonl")]
    with (folder / "proxy.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=INCLUDE)
    proxy = StorageProxy(f"http://127.0.0.1:{port}")
    try:
        deadline = time.monotonic() + 120
        while not proxy.is_up():
            assert server.poll() is None, (folder / "proxy.log").read_text()
            assert time.monotonic() < deadline, "the proxy did not come up"
            time.sleep(0.05)
        yield proxy
    finally:
        server.terminate()
        server.wait(10)
