"""What a read makes of the reply's headers: one request tells bytes, generation and checksum."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from trainops.errors import IntegrityError, TransientError
from trainops.gcp import storage as storage_module
from trainops.gcp.storage import Blob, Storage, crc32c
from trainops.settings import Settings

URI = "gs://my-bucket/runs/record.json"
DATA = b'{"kind": "x"}'


class Bucket(BaseHTTPRequestHandler):
    """Answers every read with `DATA` and the headers of a test, and counts."""

    sent: dict[str, str]
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        for name, value in {**self.sent, "Content-Length": str(len(DATA))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(DATA)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def bucket(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Storage, Any]]:
    monkeypatch.setattr(storage_module, "RETRY_SECONDS", 0.1)
    sent = {"X-Goog-Generation": "1796074243895081", "X-Goog-Hash": f"crc32c={crc32c(DATA)},md5=unused=="}
    handler: Any = type("Handler", (Bucket,), {"sent": sent, "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    endpoints = {"storage": f"http://127.0.0.1:{server.server_port}"}
    storage = Storage.connect(Settings.model_validate({**settings.model_dump(), "endpoints": endpoints}))
    yield storage, handler
    storage.close()
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_read_is_one_request(bucket: tuple[Storage, Any]) -> None:
    storage, handler = bucket
    assert storage.read_bytes(URI) == Blob(DATA, 1796074243895081)
    assert [path.partition("?")[2] for path in handler.asked] == ["alt=media"]


def test_bytes_that_are_not_those_of_the_checksum_are_refused(bucket: tuple[Storage, Any]) -> None:
    storage, handler = bucket
    handler.sent["X-Goog-Hash"] = f"crc32c={crc32c(b'other bytes')}"
    with pytest.raises(TransientError, match="checksum"):
        storage.read_bytes(URI)


def test_bytes_of_an_unknown_generation_are_refused(bucket: tuple[Storage, Any]) -> None:
    storage, handler = bucket
    del handler.sent["X-Goog-Generation"]
    with pytest.raises(IntegrityError, match=r"record\.json.*generation"):
        storage.read_bytes(URI)
