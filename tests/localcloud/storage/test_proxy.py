"""The proxy under Google's own client, on the real fake-gcs-server."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeAlias

import httpx
import pytest
from google.api_core.exceptions import PreconditionFailed, ServiceUnavailable, TooManyRequests
from google.cloud.storage.retry import DEFAULT_RETRY

Bucket: TypeAlias = Any  # the client has no type hints
Blob: TypeAlias = Any
STALE = 12345
CHUNK = 256 * 1024


def test_bytes_come_back_as_they_were_stored(bucket: Bucket) -> None:
    blob = bucket.blob("plain/folder/ä b+c.txt")
    blob.upload_from_string(b"hello\r\n\r\n--x", content_type="text/plain")
    assert bucket.blob("plain/folder/ä b+c.txt").download_as_bytes() == b"hello\r\n\r\n--x"
    assert [found.name for found in bucket.list_blobs(prefix="plain/")] == ["plain/folder/ä b+c.txt"]
    assert bucket.get_blob("plain/folder/ä b+c.txt").generation == blob.generation
    assert bucket.get_blob("plain/nothing") is None


def test_a_large_upload_goes_through_in_one_request_and_in_chunks(bucket: Bucket) -> None:
    data = bytes(range(256)) * 40_000
    bucket.blob("large/resumable").upload_from_string(data)
    bucket.blob("large/chunked", chunk_size=CHUNK * 4).upload_from_string(data)
    assert bucket.blob("large/resumable").download_as_bytes() == data
    assert bucket.blob("large/chunked").download_as_bytes(start=10, end=CHUNK) == data[10 : CHUNK + 1]


def test_compose_and_rewrite_make_new_objects(bucket: Bucket) -> None:
    parts = [bucket.blob(f"parts/{number}") for number in range(3)]
    for number, part in enumerate(parts):
        part.upload_from_string(str(number))
    whole = bucket.blob("parts/whole")
    whole.compose(parts, if_generation_match=0)
    copy = bucket.blob("parts/copy")
    copy.rewrite(whole, if_generation_match=0)
    assert copy.download_as_bytes() == b"012"


def _stored(bucket: Bucket, name: str) -> Blob:
    blob = bucket.blob(name)
    blob.upload_from_string(b"one")
    return blob


REFUSED: dict[str, Callable[[Bucket, Blob], object]] = {
    "upload": lambda bucket, blob: bucket.blob(blob.name).upload_from_string("two", if_generation_match=STALE),
    "create": lambda bucket, blob: bucket.blob(blob.name).upload_from_string("two", if_generation_match=0),
    "resumable": lambda bucket, blob: bucket.blob(blob.name, chunk_size=CHUNK).upload_from_string(
        b"x" * 3 * CHUNK, if_generation_match=STALE
    ),
    "delete": lambda bucket, blob: bucket.blob(blob.name).delete(if_generation_match=STALE),
    "patch": lambda bucket, blob: _patch(bucket.blob(blob.name)),
    "compose": lambda bucket, blob: bucket.blob(blob.name).compose([blob], if_generation_match=STALE),
    "rewrite": lambda bucket, blob: bucket.blob(blob.name).rewrite(blob, if_generation_match=STALE),
    "rewrite source": lambda bucket, blob: bucket.blob("refused/new").rewrite(blob, if_source_generation_match=STALE),
    "read": lambda bucket, blob: bucket.blob(blob.name).download_as_bytes(if_generation_match=STALE),
    "reload": lambda bucket, blob: bucket.blob(blob.name).reload(if_generation_match=STALE),
}


def _patch(blob: Blob) -> None:
    blob.metadata = {"a": "b"}
    blob.patch(if_generation_match=STALE)


@pytest.mark.parametrize("action", REFUSED)
def test_a_stale_generation_is_refused(action: str, bucket: Bucket) -> None:
    blob = _stored(bucket, f"refused/{action}")
    with pytest.raises(PreconditionFailed):
        REFUSED[action](bucket, blob)
    assert bucket.get_blob(blob.name).generation == blob.generation


@pytest.mark.case("C092")
def test_a_resumable_upload_that_turned_stale_on_the_way_is_refused_at_its_last_byte(
    bucket: Bucket, endpoint: str
) -> None:
    blob = _stored(bucket, "refused/overtaken")
    start = f"{endpoint}/upload/storage/v1/b/{bucket.name}/o?uploadType=resumable&ifGenerationMatch={blob.generation}"
    upload = httpx.post(start, json={"name": blob.name}).headers["location"]
    newer = _stored(bucket, blob.name)
    assert httpx.put(upload, content=b"late").status_code == 412
    assert bucket.get_blob(blob.name).generation == newer.generation


def test_the_right_generation_passes_and_an_unchanged_object_is_not_sent_again(bucket: Bucket, endpoint: str) -> None:
    blob = _stored(bucket, "passes/a")
    url = f"{endpoint}/storage/v1/b/{bucket.name}/o/passes%2Fa?alt=media&ifGenerationNotMatch={blob.generation}"
    assert httpx.get(url).status_code == 304
    blob.upload_from_string("two", if_generation_match=blob.generation)
    blob.delete(if_generation_match=blob.generation)
    assert not blob.exists()


@pytest.mark.parametrize("resumable", [False, True])
@pytest.mark.parametrize("creating", [True, False])
def test_of_twenty_racing_writers_exactly_one_wins(bucket: Bucket, creating: bool, resumable: bool) -> None:
    name = f"races/{creating}-{resumable}"
    generation = 0 if creating else _stored(bucket, name).generation

    def write(number: int) -> bool:
        try:
            blob = bucket.blob(name, chunk_size=CHUNK if resumable else None)
            blob.upload_from_string(bytes([number]) * (CHUNK + 1), if_generation_match=generation)
        except PreconditionFailed:
            return False
        return True

    with ThreadPoolExecutor(20) as pool:
        won = list(pool.map(write, range(20)))
    assert won.count(True) == 1
    assert bucket.blob(name).download_as_bytes()[0] == won.index(True)


def test_a_read_never_sees_half_of_a_write(bucket: Bucket) -> None:
    size = 3_000_000
    blob = bucket.blob("torn")
    blob.upload_from_string(b"\0" * size)

    def write(number: int) -> None:
        bucket.blob("torn").upload_from_string(bytes([number]) * size)

    def read(_: int) -> bytes:
        return bytes(bucket.blob("torn").download_as_bytes(checksum="crc32c"))

    with ThreadPoolExecutor(4) as pool:
        writes = [pool.submit(write, number) for number in range(1, 11)]
        reads = list(pool.map(read, range(20)))
    assert all(future.result() is None for future in writes)
    assert all(len(data) == size and len(set(data[:: size // 100])) == 1 for data in reads)


def test_an_injected_fault_is_answered_as_often_as_told_and_is_in_the_journal(bucket: Bucket, endpoint: str) -> None:
    httpx.post(f"{endpoint}/faults", json={"status": 503, "count": 2, "path": "faulty"}).raise_for_status()
    blob = bucket.blob("faulty/a")
    for _ in range(2):
        with pytest.raises(ServiceUnavailable):
            blob.upload_from_string("x", retry=None)
    blob.upload_from_string("x", retry=None)
    journal = [entry for entry in httpx.get(f"{endpoint}/journal").json() if entry.get("fault")]
    assert [entry["status"] for entry in journal[-2:]] == [503, 503]


def test_a_write_can_be_stored_and_answered_with_an_error(bucket: Bucket, endpoint: str) -> None:
    httpx.post(f"{endpoint}/faults", json={"stored": True, "method": "POST", "path": "/upload/"}).raise_for_status()
    with pytest.raises(PreconditionFailed):  # the client's own retry finds what it stored itself
        bucket.blob("stored/a").upload_from_string("x", if_generation_match=0, retry=DEFAULT_RETRY)
    assert bucket.blob("stored/a").download_as_bytes() == b"x"


def test_too_many_requests_can_be_told_too(bucket: Bucket, endpoint: str) -> None:
    httpx.post(f"{endpoint}/faults", json={"status": 429, "path": "/many$"}).raise_for_status()
    with pytest.raises(TooManyRequests):
        bucket.blob("many").upload_from_string("x", retry=None)


def test_a_fault_that_means_nothing_is_refused(endpoint: str) -> None:
    assert httpx.post(f"{endpoint}/faults", json={"status": 200}).status_code == 422


def test_every_answer_has_one_date_which_is_now(endpoint: str) -> None:
    dates = httpx.get(f"{endpoint}/storage/v1/b").headers.get_list("date")
    assert len(dates) == 1
    assert abs((parsedate_to_datetime(dates[0]) - datetime.now(UTC)).total_seconds()) < 3
