"""`Storage.copy` of an object whose rewrite takes several calls, with what may come between two of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.integration.storage_proxy import StorageProxy, storage_proxy

from trainops.errors import WriteConflict
from trainops.gcp.storage import Storage
from trainops.settings import Settings

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
DATA = bytes(range(256)) * 4000
COPIER = """
import sys
from trainops.gcp.storage import Storage
from trainops.settings import Settings
Storage.connect(Settings.model_validate_json(sys.argv[1])).copy(sys.argv[2], sys.argv[3])
"""


@pytest.fixture(scope="module")
def proxy(gcs_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StorageProxy]:
    with storage_proxy(gcs_url, tmp_path_factory.mktemp("proxy")) as proxy:
        yield proxy


@pytest.fixture
def through_proxy(settings: Settings, proxy: StorageProxy, client: Any) -> Iterator[Settings]:
    value = settings.model_dump(by_alias=True)
    value["endpoints"]["storage"] = proxy.url
    yield Settings.model_validate(value)
    proxy.behave()


@pytest.fixture
def storage(through_proxy: Settings) -> Iterator[Storage]:
    storage = Storage.connect(through_proxy)
    yield storage
    storage.close()


@pytest.fixture
def source(storage: Storage, settings: Settings) -> str:
    uri = f"gs://{settings.buckets.work}/source"
    storage.write_bytes(uri, DATA, generation=0)
    return uri


@pytest.fixture
def target(settings: Settings) -> str:
    return f"gs://{settings.buckets.models}/target"


def _calls(proxy: StorageProxy, target: str) -> list[dict[str, Any]]:
    """The calls of the rewrite so far."""
    return [entry for entry in proxy.journal("copy") if entry["object"] == target.removeprefix("gs://")]


def _wait_for_hold(proxy: StorageProxy) -> None:
    deadline = time.monotonic() + 120
    while not httpx.get(f"{proxy.url}/holds").json():
        assert time.monotonic() < deadline, "nothing is held"
        time.sleep(0.05)


def test_a_copy_follows_the_tokens_of_its_rewrite(
    storage: Storage, proxy: StorageProxy, source: str, target: str
) -> None:
    proxy.fault(rewrite_calls=4)
    generation = storage.copy(source, target)
    stored = storage.read_bytes(target)
    assert stored is not None
    assert (stored.data, stored.generation) == (DATA, generation)
    calls = _calls(proxy, target)
    assert ["rewriteToken=" in call["path"] for call in calls] == [False, True, True, True]


@pytest.mark.parametrize("status", [429, 503])
def test_a_call_that_is_refused_for_now_is_made_again_with_its_token(
    storage: Storage, proxy: StorageProxy, source: str, target: str, status: int
) -> None:
    proxy.fault(rewrite_calls=3)
    proxy.fault(status=status, count=2, path="rewriteToken=")
    storage.copy(source, target)
    calls = _calls(proxy, target)
    assert [call["status"] for call in calls] == [200, status, status, 200, 200]
    assert calls[1]["path"] == calls[3]["path"]


def test_a_last_call_that_is_done_and_answered_503_counts_as_copied(
    storage: Storage, proxy: StorageProxy, source: str, target: str
) -> None:
    proxy.fault(rewrite_calls=2)
    proxy.fault(status=503, stored=True, path="rewriteToken=")
    generation = storage.copy(source, target)
    info = storage.info(target)
    assert info is not None
    assert (info.generation, info.size) == (generation, len(DATA))
    assert [call["status"] for call in _calls(proxy, target)] == [200, 503, 412]


def test_a_copy_that_is_killed_between_two_calls_leaves_nothing_and_is_made_anew(
    storage: Storage, proxy: StorageProxy, through_proxy: Settings, source: str, target: str
) -> None:
    proxy.fault(rewrite_calls=3)
    held = proxy.fault(hold=60, stored=True, path="rewriteToken=")
    arguments = [sys.executable, "-c", COPIER, through_proxy.model_dump_json(by_alias=True), source, target]
    with subprocess.Popen(arguments, env={**os.environ, "PYTHONPATH": str(PLUGINS)}) as copier:
        _wait_for_hold(proxy)
        copier.send_signal(signal.SIGKILL)
    httpx.delete(f"{proxy.url}/holds/{held}").raise_for_status()
    assert storage.info(target) is None
    proxy.fault(rewrite_calls=2)
    storage.copy(source, target)
    stored = storage.read_bytes(target)
    assert stored is not None
    assert stored.data == DATA
    assert ["rewriteToken=" in call["path"] for call in _calls(proxy, target)] == [False, True, False, True]


def test_a_target_that_another_writer_made_between_two_calls_is_left_alone(
    storage: Storage, proxy: StorageProxy, client: Any, source: str, target: str
) -> None:
    proxy.fault(rewrite_calls=2)
    proxy.fault(hold=60, path="rewriteToken=")
    with ThreadPoolExecutor(1) as pool:
        copying = pool.submit(storage.copy, source, target)
        _wait_for_hold(proxy)
        storage.write_bytes(target, b"of somebody else", generation=0)
        httpx.delete(f"{proxy.url}/holds").raise_for_status()
        with pytest.raises(WriteConflict):
            copying.result()
    stored = storage.read_bytes(target)
    assert stored is not None
    assert stored.data == b"of somebody else"
