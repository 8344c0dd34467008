"""Two deployments share one ledger, on a real GCS server that misbehaves: never over the quota, and nobody is lost."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.gpu_queue.deployment import POOLS, QUOTA
from tests.integration.storage_proxy import StorageProxy, storage_proxy

from trainops.gcp.storage import Storage
from trainops.settings import Settings
from trainops.steps.gpu_queue import GpuQueue

FAULTS: list[dict[str, Any]] = [
    {"status": 412, "method": "POST", "path": "ledger.json"},
    {"status": 429, "method": "POST", "path": "ledger.json"},
    {"status": 503, "method": "POST", "path": "ledger.json", "stored": True},
    {"status": 412, "method": "POST", "path": "queue/requests/"},
    {"status": 503, "method": "POST", "path": "queue/requests/", "stored": True},
    {"status": 503, "method": "GET", "path": "queue/"},
]


@pytest.fixture
def proxy(gcs_url: str, tmp_path: Path) -> Iterator[StorageProxy]:
    with storage_proxy(gcs_url, tmp_path) as proxy:
        yield proxy


def misbehave(proxy: StorageProxy, until: threading.Event) -> None:
    """Arm each fault in turn, when the one before has struck, until told to stop."""
    turn = 0
    while not until.wait(0.1):
        if not proxy.armed():
            proxy.fault(**FAULTS[turn % len(FAULTS)], skip=1)
            turn += 1


def run_both(settings: Settings, proxy: StorageProxy, folder: Path, each: int) -> list[dict[str, Any]]:
    """Run both deployments to their ends, and return what was held when."""
    value = settings.model_dump(by_alias=True)
    value["endpoints"]["storage"] = proxy.url
    given = folder / "settings.json"
    given.write_text(Settings.model_validate(value).model_dump_json(by_alias=True))
    command = [sys.executable, str(Path(__file__).with_name("deployment.py")), str(given)]
    ended = threading.Event()
    faults = threading.Thread(target=misbehave, args=(proxy, ended))
    faults.start()
    both = [subprocess.Popen([*command, name, str(each)], stdout=subprocess.PIPE, text=True) for name in "ab"]
    told = [deployment.communicate()[0] for deployment in both]
    ended.set()
    faults.join()
    assert [deployment.returncode for deployment in both] == [0, 0]
    return [held for text in told for held in json.loads(text)]


def most_at_once(held: list[dict[str, Any]]) -> int:
    """The largest number of GPUs that were held at one moment."""
    changes = sorted([(one["since"], one["gpus"]) for one in held] + [(one["until"], -one["gpus"]) for one in held])
    now = most = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("each", [10, pytest.param(100, marks=[pytest.mark.full, pytest.mark.timeout(600)])])
def test_two_deployments_never_hold_more_than_the_quota_and_lose_nobody(
    settings: Settings, storage: Storage, proxy: StorageProxy, tmp_path: Path, each: int
) -> None:
    held = run_both(settings, proxy, tmp_path, each)
    keys = [one["key"] for one in held]
    assert len(keys) == len(set(keys)) == 2 * each
    assert QUOTA // 2 < most_at_once(held) <= QUOTA
    struck = {entry.get("fault") for entry in proxy.journal("upload")}
    assert {"refused", "stored"} <= struck, struck
    ledger, requests = GpuQueue(storage, settings.work, POOLS).snapshot()
    assert (ledger.leases, requests) == ({}, [])
