"""Requests that are held until they are released: what stands in the store meanwhile, and who is answered at last."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias

import httpx
import pytest

Bucket: TypeAlias = Any  # the client has no type hints
WRITER = "import httpx, sys; httpx.post(sys.argv[1], content=b'late', timeout=60)"


class Held:
    """Arms holds on objects, and waits until they hold."""

    def __init__(self, endpoint: str, bucket: str, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self.endpoint = endpoint
        self.http = httpx.Client(base_url=endpoint, timeout=30)
        self.objects = f"/storage/v1/b/{bucket}/o"
        self.uploads = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name="

    def arm(self, **fault: Any) -> str:
        return str(self.http.post("/faults", json={"hold": 30, **fault}).raise_for_status().json()["id"])

    def write(self, name: str, content: bytes, query: str = "") -> Future[httpx.Response]:
        return self._pool.submit(self.http.post, f"{self.uploads}{name}{query}", content=content)

    def read(self, name: str) -> Future[httpx.Response]:
        return self._pool.submit(self.http.get, f"{self.objects}/{name}?alt=media")

    def wait(self) -> dict[str, Any]:
        """Return the one request that is held, as soon as there is one."""
        deadline = time.monotonic() + 120
        while not (held := self.http.get("/holds").json()):
            assert time.monotonic() < deadline, "nothing is held"
            time.sleep(0.02)
        assert len(held) == 1
        return dict(held[0])

    def release(self, fault: str) -> int:
        return int(self.http.delete(f"/holds/{fault}").raise_for_status().json()["released"])

    def content(self, name: str) -> bytes | None:
        reply = self.http.get(f"{self.objects}/{name}?alt=media")
        return reply.content if reply.status_code == 200 else None

    def journal(self, name: str) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self.http.get("/journal").json()
        return [entry for entry in entries if entry["object"].endswith(f"/{name}") and entry["method"] == "POST"]


@pytest.fixture
def held(endpoint: str, bucket: Bucket) -> Iterator[Held]:
    with ThreadPoolExecutor(4) as pool:
        held = Held(endpoint, bucket.name, pool)
        yield held
        held.http.delete("/faults").raise_for_status()
        held.http.delete("/holds").raise_for_status()
    held.http.close()


def test_a_write_can_be_stored_and_its_true_reply_withheld(held: Held) -> None:
    fault = held.arm(stored=True, method="POST", path="held-after")
    writing = held.write("held-after", b"new")
    call = held.wait()
    since = call.pop("since")
    assert call == {
        "id": fault,
        "method": "POST",
        "path": f"{held.uploads}held-after",
        "object": "local-llm-work/held-after",
    }
    assert held.content("held-after") == b"new"
    entry = held.journal("held-after")[-1]
    assert (entry["status"], entry["held"], "fault" in entry) == (200, True, False)
    assert entry["time"] <= since
    assert not writing.done()
    assert held.release(fault) == 1
    assert writing.result().json()["name"] == "held-after"
    assert held.http.get("/holds").json() == []


def test_a_write_can_be_held_before_it_is_stored(held: Held) -> None:
    fault = held.arm(method="POST", path="held-before")
    writing = held.write("held-before", b"new")
    held.wait()
    assert held.content("held-before") is None
    assert held.journal("held-before") == []
    assert held.release(fault) == 1
    assert writing.result().status_code == 200
    assert held.content("held-before") == b"new"
    assert held.journal("held-before")[-1]["held"] is True


@pytest.mark.parametrize(("stored", "first"), [(True, 200), (False, 412)])
def test_the_others_write_the_same_object_while_a_write_is_held(held: Held, stored: bool, first: int) -> None:
    name = f"held-race-{stored}"
    fault = held.arm(stored=stored, method="POST", path=name)
    writing = held.write(name, b"held", "&ifGenerationMatch=0")
    held.wait()
    other = held.write(name, b"other", "&ifGenerationMatch=0").result()
    assert other.status_code == (412 if stored else 200)
    held.release(fault)
    assert writing.result().status_code == first


@pytest.mark.parametrize("stored", [True, False])
def test_a_write_whose_client_is_killed_while_it_is_held_is_stored_all_the_same(held: Held, stored: bool) -> None:
    name = f"held-killed-{stored}"
    fault = held.arm(stored=stored, path=name)
    with subprocess.Popen([sys.executable, "-c", WRITER, f"{held.endpoint}{held.uploads}{name}"]) as client:
        held.wait()
        client.kill()
    assert held.content(name) == (b"late" if stored else None)
    assert held.release(fault) == 1
    while not held.journal(name):
        time.sleep(0.02)
    assert held.content(name) == b"late"


def test_a_read_that_is_held_tells_what_stood_when_it_was_carried_out(held: Held) -> None:
    held.write("held-read", b"old").result()
    fault = held.arm(stored=True, method="GET", path="held-read.*media")
    reading = held.read("held-read")
    held.wait()
    held.write("held-read", b"new").result()
    held.release(fault)
    assert reading.result().content == b"old"


def test_a_hold_ends_by_itself_and_skips_what_it_was_told_to(held: Held) -> None:
    held.arm(hold=0.2, skip=1, path="held-short", method="POST")
    replies = [held.write("held-short", b"x").result() for _ in range(3)]
    assert [reply.status_code for reply in replies] == [200, 200, 200]
    assert [entry.get("held") for entry in held.journal("held-short")] == [None, True, None]


def test_all_that_is_held_can_be_released_at_once(held: Held) -> None:
    held.arm(count=2, path="held-many")
    writing = [held.write(f"held-many-{number}", b"x") for number in range(2)]
    while len(held.http.get("/holds").json()) < 2:
        time.sleep(0.02)
    assert held.http.delete("/holds").json() == {"released": 2}
    assert [future.result().status_code for future in writing] == [200, 200]


def test_one_fault_of_several_is_disarmed_by_its_id(held: Held) -> None:
    first, second = held.arm(path="a"), held.arm(path="b")
    assert held.http.delete(f"/faults/{first}").json() == {"removed": 1}
    assert held.http.delete(f"/faults/{first}").status_code == 404
    assert [fault["id"] for fault in held.http.get("/faults").json()] == [second]
