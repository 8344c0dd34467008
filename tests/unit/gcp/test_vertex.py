from collections.abc import Iterator
from typing import Any

import pytest

from trainops.errors import (
    AccessError,
    CapacityError,
    NotFoundError,
    NotSentError,
    RequestRefused,
    TransientError,
    WriteConflict,
)
from trainops.gcp.vertex import Vertex
from trainops.settings import Settings

JOBS = "/v1/projects/test-llm/locations/us-central1/customJobs"
NAME = "projects/100000000001/locations/us-central1/customJobs/42"


@pytest.fixture
def vertex(settings: Settings) -> Iterator[Vertex]:
    vertex = Vertex.connect(settings)
    yield vertex
    vertex.close()


def test_create_posts_the_job_once_and_returns_what_vertex_keeps(vertex: Vertex, server: Any) -> None:
    server.replies.append((200, {"name": NAME, "state": "JOB_STATE_PENDING"}))
    assert vertex.create({"displayName": "x"})["name"] == NAME
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.body) == ("POST", JOBS, {"displayName": "x"})


@pytest.mark.case("C082")
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, CapacityError),
        (400, RequestRefused),
        (401, AccessError),
        (403, AccessError),
        (404, NotFoundError),
        (409, RequestRefused),
        (412, WriteConflict),
        (408, TransientError),
        (500, TransientError),
        (503, TransientError),
        (504, TransientError),
    ],
)
def test_a_refused_create_keeps_googles_words(vertex: Vertex, server: Any, status: int, error: type[Exception]) -> None:
    server.refuse(status, "The following quota metrics exceed quota limits: some/metric")
    with pytest.raises(error, match="quota metrics exceed quota limits: some/metric"):
        vertex.create({})
    assert len(server.asked) == 1


def test_429_on_a_read_is_transient(vertex: Vertex, server: Any) -> None:
    server.refuse(429, "slow down")
    with pytest.raises(TransientError, match="slow down") as caught:
        vertex.get(NAME)
    assert caught.value.status == 429


def test_a_reply_that_is_no_json_is_told_as_it_is(vertex: Vertex, server: Any) -> None:
    server.replies.extend([(502, "<html>bad gateway</html>"), (200, "<html>portal</html>")])
    with pytest.raises(TransientError, match="bad gateway"):
        vertex.get(NAME)
    with pytest.raises(TransientError, match="no reply"):
        vertex.get(NAME)


def test_without_a_connection_a_create_was_not_sent(settings: Settings) -> None:
    nowhere = {**settings.model_dump(), "endpoints": {"vertex": "http://127.0.0.1:9"}}
    vertex = Vertex.connect(Settings.model_validate(nowhere))
    with pytest.raises(NotSentError) as caught:
        vertex.create({})
    assert caught.value.status == 0
    vertex.close()


def test_a_list_reads_every_page(vertex: Vertex, server: Any) -> None:
    server.replies.extend([
        (200, {"customJobs": [{"name": "a"}, {"name": "b"}], "nextPageToken": "more"}),
        (200, {"nextPageToken": "last"}),
        (200, {"customJobs": [{"name": "c"}]}),
    ])
    assert [job["name"] for job in vertex.list("labels.job-key=x")] == ["a", "b", "c"]
    assert [asked.query.get("pageToken") for asked in server.asked] == [None, "more", "last"]
    assert {asked.query["filter"] for asked in server.asked} == {"labels.job-key=x"}
    assert {asked.path for asked in server.asked} == {JOBS}


def test_a_list_asks_for_the_fields_that_are_wanted_on_every_page(vertex: Vertex, server: Any) -> None:
    server.replies.extend([(200, {"customJobs": [{"name": "a"}], "nextPageToken": "more"}), (200, {})])
    vertex.list("labels.job-key=x", ("name", "state", "labels"))
    assert [asked.query["readMask"] for asked in server.asked] == ["name,state,labels"] * 2


def test_an_empty_list_and_no_filter(vertex: Vertex, server: Any) -> None:
    server.replies.append((200, {}))
    assert vertex.list() == []
    assert not {"filter", "readMask"} & set(server.asked[0].query)


def test_get_cancel_and_delete_go_by_name(vertex: Vertex, server: Any) -> None:
    server.replies.extend([(200, {"name": NAME}), (200, {}), (200, {"name": "op", "done": True})])
    assert vertex.get(NAME) == {"name": NAME}
    vertex.cancel(NAME)
    assert vertex.delete(NAME)["done"]
    assert [(asked.method, asked.path) for asked in server.asked] == [
        ("GET", f"/v1/{NAME}"),
        ("POST", f"/v1/{NAME}:cancel"),
        ("DELETE", f"/v1/{NAME}"),
    ]


def test_what_is_no_name_of_a_job_is_refused_before_it_is_sent(vertex: Vertex, server: Any) -> None:
    with pytest.raises(RequestRefused, match="not a job's name"):
        vertex.get("42")
    assert server.asked == []


def test_given_credentials_authorize_the_request_and_a_failed_refresh_is_transient(
    settings: Settings, server: Any
) -> None:
    from google.oauth2.credentials import Credentials

    factory: Any = Credentials
    google = Settings.model_validate({**settings.model_dump(), "credentials": "google"})
    vertex = Vertex.connect(google, factory("token"))
    server.replies.append((200, {"name": NAME}))
    assert vertex.get(NAME) == {"name": NAME}
    server.refuse(401, "expired")
    with pytest.raises(NotSentError, match="token"):
        vertex.get(NAME)
    vertex.close()
