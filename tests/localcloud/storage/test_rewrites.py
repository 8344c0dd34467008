"""Rewrites that take several calls, as those of large objects between places do."""

from typing import Any, TypeAlias

import httpx
import pytest

Bucket: TypeAlias = Any  # the client has no type hints
DATA = b"0123456789" * 100


@pytest.fixture
def source(bucket: Bucket) -> Any:
    blob = bucket.blob("rewrites/source")
    blob.upload_from_string(DATA)
    return blob


def _url(bucket: Bucket, endpoint: str, target: str) -> str:
    objects = f"b/{bucket.name}/o"
    return f"{endpoint}/storage/v1/{objects}/rewrites%2Fsource/rewriteTo/{objects}/rewrites%2F{target}"


def _draw_out(endpoint: str, calls: int, **which: Any) -> None:
    httpx.post(f"{endpoint}/faults", json={"rewrite_calls": calls, **which}).raise_for_status()


def test_a_rewrite_takes_as_many_calls_as_it_was_told_and_stores_with_the_last(
    bucket: Bucket, endpoint: str, source: Any
) -> None:
    _draw_out(endpoint, 3)
    target, token = bucket.blob("rewrites/three"), None
    progress: list[tuple[int, int, bool, bool]] = []
    while token is not None or not progress:
        token, written, size = target.rewrite(source, token=token, if_generation_match=0)
        progress.append((written, size, token is None, target.exists()))
    assert progress == [(333, 1000, False, False), (666, 1000, False, False), (1000, 1000, True, True)]
    assert target.download_as_bytes() == DATA
    assert bucket.blob("rewrites/next").rewrite(source)[0] is None


def test_a_call_of_a_rewrite_may_be_repeated(bucket: Bucket, endpoint: str, source: Any) -> None:
    _draw_out(endpoint, 3)
    url = _url(bucket, endpoint, "repeated")
    token = httpx.post(url).json()["rewriteToken"]
    answers = [httpx.post(url, params={"rewriteToken": token}).json() for _ in range(2)]
    assert answers[0] == answers[1]
    assert answers[0]["totalBytesRewritten"] == "666"


@pytest.mark.parametrize("status", [412, 429, 503])
def test_an_error_can_strike_between_two_calls_of_a_rewrite(
    bucket: Bucket, endpoint: str, source: Any, status: int
) -> None:
    _draw_out(endpoint, 2)
    httpx.post(f"{endpoint}/faults", json={"status": status, "path": "rewriteToken="}).raise_for_status()
    url = _url(bucket, endpoint, f"struck-{status}")
    token = httpx.post(url).json()["rewriteToken"]
    answers = [httpx.post(url, params={"rewriteToken": token}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [status, 200]
    assert answers[1].json()["done"] is True


def test_a_target_that_came_to_be_between_two_calls_is_not_written_over(
    bucket: Bucket, endpoint: str, source: Any
) -> None:
    _draw_out(endpoint, 2)
    url = f"{_url(bucket, endpoint, 'overtaken')}?ifGenerationMatch=0"
    token = httpx.post(url).json()["rewriteToken"]
    bucket.blob("rewrites/overtaken").upload_from_string("other")
    assert httpx.post(f"{url}&rewriteToken={token}").status_code == 412
    assert bucket.blob("rewrites/overtaken").download_as_bytes() == b"other"


def test_a_token_is_of_one_rewrite_alone(bucket: Bucket, endpoint: str, source: Any) -> None:
    _draw_out(endpoint, 2)
    token = httpx.post(_url(bucket, endpoint, "one")).json()["rewriteToken"]
    for target, wrong in (("another", token), ("one", "nonsense"), ("one", "bnVsbA==")):
        answer = httpx.post(_url(bucket, endpoint, target), params={"rewriteToken": wrong})
        assert (answer.status_code, "rewriteToken" in answer.json()["error"]["message"]) == (400, True)


def test_a_rewrite_of_nothing_is_answered_404(bucket: Bucket, endpoint: str) -> None:
    _draw_out(endpoint, 2)
    objects = f"{endpoint}/storage/v1/b/{bucket.name}/o"
    assert httpx.post(f"{objects}/nothing/rewriteTo/b/{bucket.name}/o/target").status_code == 404


def test_only_the_rewrites_that_match_are_drawn_out_after_those_that_are_skipped(
    bucket: Bucket, endpoint: str, source: Any
) -> None:
    _draw_out(endpoint, 2, skip=1, path="wanted")
    done = [httpx.post(_url(bucket, endpoint, name)).json()["done"] for name in ("other", "wanted", "wanted")]
    assert done == [True, True, False]
