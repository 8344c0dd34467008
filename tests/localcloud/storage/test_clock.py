"""A server whose clock is off says so in every answer, and in none that holds what users stored."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, TypeAlias

import httpx
import pytest

Bucket: TypeAlias = Any  # the client has no type hints
HOUR = 3600.0
NEAR = timedelta(seconds=60)


@pytest.fixture(params=[HOUR, -HOUR], ids=["ahead", "behind"])
def off(request: pytest.FixtureRequest, endpoint: str) -> Iterator[timedelta]:
    told = httpx.post(f"{endpoint}/faults", json={"clock_skew": request.param})
    yield timedelta(seconds=request.param)
    httpx.delete(f"{endpoint}/faults/{told.json()['id']}").raise_for_status()


def test_the_times_of_an_object_are_off_wherever_they_are_told(bucket: Bucket, off: timedelta) -> None:
    told = datetime.now(UTC) + off
    blob = bucket.blob("clock/a")
    blob.upload_from_string("x")
    listed = next(iter(bucket.list_blobs(prefix="clock/a")))
    looked_up = bucket.get_blob("clock/a")
    assert all(abs(one.updated - told) < NEAR for one in (blob, listed, looked_up))
    assert blob.updated == listed.updated == looked_up.updated
    assert abs(blob.time_created - told) < NEAR
    copy = bucket.blob("clock/b")
    copy.rewrite(blob)
    assert abs(copy.updated - told) < NEAR


def test_the_date_of_every_answer_is_off(bucket: Bucket, endpoint: str, off: timedelta) -> None:
    bucket.blob("clock/read").upload_from_string("x")
    path = f"{endpoint}/storage/v1/b/{bucket.name}/o/clock%2Fread"
    for answer in (httpx.get(path), httpx.get(f"{path}?alt=media"), httpx.get(f"{path}no")):
        [date] = answer.headers.get_list("date")
        assert abs(parsedate_to_datetime(date) - datetime.now(UTC) - off) < NEAR


def test_what_users_stored_comes_back_as_it_is(bucket: Bucket, off: timedelta) -> None:
    content = b'{"kind": "storage#object", "updated": "2026-01-01T00:00:00Z"}'
    blob = bucket.blob("clock/content")
    blob.upload_from_string(content, content_type="application/json")
    assert bucket.blob("clock/content").download_as_bytes() == content


def test_a_clock_that_was_put_right_tells_the_true_times_again(bucket: Bucket, endpoint: str) -> None:
    fault = httpx.post(f"{endpoint}/faults", json={"clock_skew": HOUR}).json()["id"]
    bucket.blob("clock/right").upload_from_string("x")
    assert httpx.delete(f"{endpoint}/faults/{fault}").json() == {"removed": 1}
    assert abs(bucket.get_blob("clock/right").updated - datetime.now(UTC)) < NEAR


def test_the_clock_leaves_other_faults_their_requests(bucket: Bucket, endpoint: str, off: timedelta) -> None:
    httpx.post(f"{endpoint}/faults", json={"status": 429, "path": "clock/limited"}).raise_for_status()
    path = f"{endpoint}/storage/v1/b/{bucket.name}/o/clock%2Flimited"
    assert [httpx.get(path).status_code for _ in range(2)] == [429, 404]
