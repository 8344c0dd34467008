"""Reports of users whose copies and uploads did more, or less, than they asked for; every request is counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen

import pytest

from trainops.gcp.storage import Storage
from trainops.settings import Settings

PARTS = 3
"""Answers to a rewrite before the one that finishes it."""


class Counting(BaseHTTPRequestHandler):
    """Hands every request on and notes it; rewrites take several requests, as those of large objects do."""

    upstream = ""
    seen: list[tuple[str, str]]

    def do_GET(self) -> None:
        self._forward(None)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if "/rewriteTo/" in self.path and self._rewrites() < PARTS:
            self._unfinished()
            return
        if "/copyTo/" in self.path:
            self._answer(413, b"{}", [])
            return
        self._forward(body)

    def _rewrites(self) -> int:
        return sum("/rewriteTo/" in path for _, path in self.seen)

    def _unfinished(self) -> None:
        asked = parse_qs(urlsplit(self.path).query).get("rewriteToken", [""])[0]
        assert asked == (f"part-{self._rewrites()}" if self._rewrites() else "")
        self.seen.append((self.command, self.path))
        told = {"done": False, "rewriteToken": f"part-{self._rewrites()}", "objectSize": "5"}
        self._answer(200, json.dumps(told | {"totalBytesRewritten": "1"}).encode(), [])

    def _forward(self, body: bytes | None) -> None:
        self.seen.append((self.command, self.path))
        path = self.path.partition("&rewriteToken=")[0] if "/rewriteTo/" in self.path else self.path
        headers = {"Content-Type": self.headers.get("Content-Type", "")}
        try:
            with urlopen(Request(self.upstream + path, body, headers, method=self.command)) as answer:
                self._answer(200, answer.read(), answer.getheaders())
        except HTTPError as error:
            with error:
                self._answer(error.code, error.read(), [])

    def _answer(self, status: int, reply: bytes, headers: list[tuple[str, str]]) -> None:
        self.send_response(status)
        for name, value in headers:
            if name.lower().startswith("x-goog"):
                self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def counted(gcs_url: str, settings: Settings, client: Any) -> Iterator[tuple[Storage, list[tuple[str, str]]]]:
    handler: Any = type("Handler", (Counting,), {"upstream": gcs_url, "seen": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    endpoints = {"storage": f"http://127.0.0.1:{server.server_port}"}
    storage = Storage.connect(Settings.model_validate({**settings.model_dump(), "endpoints": endpoints}))
    yield storage, handler.seen
    storage.close()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.case("C089")
def test_a_copy_that_takes_long_is_rewritten_token_by_token_until_it_is_whole(
    counted: tuple[Storage, list[tuple[str, str]]], settings: Settings
) -> None:
    storage, seen = counted
    storage.write_bytes(f"{settings.work}/large", b"model", generation=0)
    generation = storage.copy(f"{settings.work}/large", f"{settings.models}/large")
    rewrites = [path for _, path in seen if "/rewriteTo/" in path]
    assert len(rewrites) == PARTS + 1
    assert not [path for _, path in seen if "/copyTo/" in path]
    found = storage.read_bytes(f"{settings.models}/large")
    assert found is not None
    assert (found.data, found.generation) == (b"model", generation)


@pytest.mark.case("C091")
@pytest.mark.case("C115")
def test_an_upload_to_a_healthy_server_is_one_request(
    counted: tuple[Storage, list[tuple[str, str]]], settings: Settings
) -> None:
    storage, seen = counted
    storage.write_bytes(f"{settings.work}/small", b"package", generation=0)
    assert [command for command, path in seen if "/upload/" in path] == ["POST"]
