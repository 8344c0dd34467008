import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import Request, urlopen

import google_crc32c
import pytest

from trainops.errors import IntegrityError, NotFoundError, TransientError, WriteConflict
from trainops.gcp import storage as storage_module
from trainops.gcp.storage import Storage
from trainops.settings import Settings


def test_what_is_written_is_read_with_its_generation_and_time(storage: Storage, settings: Settings) -> None:
    uri = f"{settings.work}/a/b.bin"
    generation = storage.write_bytes(uri, b"\x00\xff", generation=0)
    blob = storage.read_bytes(uri)
    assert blob is not None
    assert (blob.data, blob.generation) == (b"\x00\xff", generation)
    info = storage.info(uri)
    assert info is not None
    assert info.generation == generation
    assert abs(info.updated - datetime.now(UTC)) < timedelta(minutes=1)


def test_a_missing_object_reads_as_none(storage: Storage, settings: Settings) -> None:
    uri = f"{settings.work}/none"
    assert storage.read_bytes(uri) is None
    assert storage.read_json(uri) is None
    assert storage.info(uri) is None
    assert not storage.exists(uri)
    assert not storage.delete(uri)


def test_only_the_end_of_an_object_is_read_where_that_is_all_that_is_wanted(
    storage: Storage, settings: Settings
) -> None:
    uri = f"{settings.work}/metrics.jsonl"
    assert storage.read_tail(uri, 5) is None
    for data, tail in ((b"", b""), (b"abc", b"abc"), (b"abcde", b"abcde"), (b"0123456789", b"56789")):
        storage.write_bytes(uri, data, generation=None)
        assert storage.read_tail(uri, 5) == tail


def test_json_keeps_its_value(storage: Storage, settings: Settings) -> None:
    uri = f"{settings.work}/v.json"
    generation = storage.write_json(uri, {"ü": [1, 2.5, None]}, generation=None)
    document = storage.read_json(uri)
    assert document is not None
    assert (document.value, document.generation) == ({"ü": [1, 2.5, None]}, generation)


def test_an_object_that_is_no_json_is_an_integrity_error(storage: Storage, settings: Settings) -> None:
    storage.write_bytes(f"{settings.work}/v.json", b"{", generation=0)
    with pytest.raises(IntegrityError, match=r"v\.json"):
        storage.read_json(f"{settings.work}/v.json")


def test_a_stale_generation_is_a_conflict_and_changes_nothing(storage: Storage, settings: Settings) -> None:
    uri = f"{settings.work}/ledger.json"
    first = storage.write_bytes(uri, b"one", generation=0)
    second = storage.write_bytes(uri, b"two", generation=first)
    with pytest.raises(WriteConflict) as caught:
        storage.write_bytes(uri, b"three", generation=first)
    assert caught.value.status == 412
    blob = storage.read_bytes(uri)
    assert blob is not None
    assert (blob.data, blob.generation) == (b"two", second)


def test_writing_the_same_bytes_again_counts_as_won(storage: Storage, settings: Settings) -> None:
    uri = f"{settings.work}/same"
    generation = storage.write_bytes(uri, b"same", generation=0)
    assert storage.write_bytes(uri, b"same", generation=0) == generation


def test_one_of_many_racing_writers_wins(storage: Storage, settings: Settings) -> None:
    uri = f"{settings.work}/race"

    def write(number: int) -> bool:
        try:
            storage.write_bytes(uri, f"writer {number}".encode(), generation=0)
        except WriteConflict:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(write, range(8)))
    blob = storage.read_bytes(uri)
    assert blob is not None
    assert won.count(True) == 1
    assert blob.data == f"writer {won.index(True)}".encode()


def test_a_listing_tells_size_checksum_and_generation_in_order(storage: Storage, settings: Settings) -> None:
    for name in ("b", "a", "x/c"):
        storage.write_bytes(f"{settings.work}/list/{name}", name.encode(), generation=0)
    storage.write_bytes(f"{settings.work}/other", b"-", generation=0)
    found = list(storage.list(f"{settings.work}/list/"))
    assert [item.uri for item in found] == [f"{settings.work}/list/{name}" for name in ("a", "b", "x/c")]
    expected = base64.b64encode(google_crc32c.value(b"x/c").to_bytes(4, "big")).decode()
    assert (found[2].size, found[2].crc32c) == (3, expected)
    assert found[2].generation > 0
    assert storage.folders(f"{settings.work}/list") == ("x",)


def test_files_go_up_and_come_down(storage: Storage, settings: Settings, tmp_path: Path) -> None:
    source, target, uri = tmp_path / "up", tmp_path / "down", f"{settings.work}/file"
    source.write_bytes(b"text" * 1000)
    generation = storage.upload_file(source, uri, generation=0)
    assert storage.upload_file(source, uri, generation=0) == generation
    assert storage.download_file(uri, target) == generation
    assert target.read_bytes() == source.read_bytes()
    source.write_bytes(b"else")
    with pytest.raises(WriteConflict):
        storage.upload_file(source, uri, generation=0)


def test_a_large_file_does_not_replace_another(storage: Storage, settings: Settings, tmp_path: Path) -> None:
    source, uri = tmp_path / "large", f"{settings.work}/large"
    source.write_bytes(b"0123456789abcdef" * (9 << 16))  # 9 MiB: more than one request
    generation = storage.upload_file(source, uri, generation=0)
    assert storage.upload_file(source, uri, generation=0) == generation
    source.write_bytes(b"0123456789ABCDEF" * (9 << 16))
    with pytest.raises(WriteConflict):
        storage.upload_file(source, uri, generation=0)


def test_a_download_of_nothing_leaves_no_file(storage: Storage, settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        storage.download_file(f"{settings.work}/none", tmp_path / "down")
    assert list(tmp_path.iterdir()) == []


def test_a_copy_is_made_once(storage: Storage, settings: Settings) -> None:
    source, target = f"{settings.work}/m", f"{settings.models}/m"
    storage.write_bytes(source, b"model", generation=0)
    generation = storage.copy(source, target)
    assert storage.copy(source, target) == generation
    blob = storage.read_bytes(target)
    assert blob is not None
    assert blob.data == b"model"
    storage.write_bytes(source, b"other", generation=None)
    with pytest.raises(WriteConflict):
        storage.copy(source, target)
    with pytest.raises(NotFoundError):
        storage.copy(f"{settings.work}/none", f"{settings.models}/n")


def test_a_missing_bucket_is_not_found(storage: Storage) -> None:
    with pytest.raises(NotFoundError, match="no-such-bucket"):
        storage.write_bytes("gs://no-such-bucket/x", b"", generation=0)
    with pytest.raises(NotFoundError):
        list(storage.list("gs://no-such-bucket/"))


def test_a_server_that_is_not_there_is_transient(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_module, "RETRY_SECONDS", 0.1)
    nowhere = {**settings.model_dump(), "endpoints": {"storage": "http://127.0.0.1:9"}}
    storage = Storage.connect(Settings.model_validate(nowhere))
    with pytest.raises(TransientError):
        storage.read_bytes(f"{settings.work}/x")
    storage.close()


class _Proxy(BaseHTTPRequestHandler):
    """Hands every request to the server behind it, and then answers 503 to the first upload that was stored."""

    upstream = ""
    uploads = 0

    def do_GET(self) -> None:
        self._forward(None)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        type(self).uploads += 1
        self._forward(body, lose_reply=self.uploads == 1)

    def _forward(self, body: bytes | None, lose_reply: bool = False) -> None:
        headers = {"Content-Type": self.headers.get("Content-Type", "")}
        status, reply, sent = 200, b"", []
        try:
            with urlopen(Request(self.upstream + self.path, body, headers, method=self.command)) as answer:
                reply, sent = answer.read(), answer.getheaders()
        except OSError as error:
            with error as answer:  # type: ignore[attr-defined]
                status, reply = answer.code, answer.read()
        self.send_response(503 if lose_reply else status)
        for name, value in sent:
            if name.lower().startswith("x-goog"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def losing_storage(gcs_url: str, settings: Settings, client: Any) -> Iterator[Storage]:
    handler: Any = type("Handler", (_Proxy,), {"upstream": gcs_url, "uploads": 0})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    endpoints = {"storage": f"http://127.0.0.1:{server.server_port}"}
    storage = Storage.connect(Settings.model_validate({**settings.model_dump(), "endpoints": endpoints}))
    yield storage
    assert handler.uploads == 2, "the client did ask again"
    storage.close()
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_write_that_was_stored_but_answered_503_is_known_as_ones_own(
    losing_storage: Storage, settings: Settings, client: Any
) -> None:
    generation = losing_storage.write_bytes(f"{settings.work}/ledger.json", b"mine", generation=0)
    stored = client.bucket(settings.buckets.work).get_blob("ledger.json")
    assert (stored.generation, stored.download_as_bytes()) == (generation, b"mine")
