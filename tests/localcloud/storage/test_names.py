"""Objects are files on this machine: no name reaches a file outside the server's folder."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from localcloud.storage.names import refusal_of
from localcloud.storage.operation import name_in_metadata

OUTSIDE = ["../x", "../../x", "a/../../x", "a/..", "..", ".", "./x", "/../x", "a/../b", "a\0b"]
INSIDE = ["a/b", "/etc/passwd", "...", "a/...", "..a", "a..", "a..b/c", "..%2f..%2fx", "%2e%2e/x", "a\\..\\b", "ä/日本"]
OBJECTS = "/storage/v1/b/local-llm-work/o"
UPLOAD = f"/upload{OBJECTS}"


class Raw:
    """Sends a path as it is; clients of HTTP clean it up."""

    def __init__(self, endpoint: str) -> None:
        self._host = urlsplit(endpoint).netloc

    def __call__(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
        connection = HTTPConnection(self._host)
        connection.request(
            method, path, body=body, headers={name.replace("_", "-"): at for name, at in headers.items()}
        )
        reply = connection.getresponse()
        answer = reply.status, reply.read()
        connection.close()
        return answer


@pytest.fixture
def raw(endpoint: str) -> Raw:
    return Raw(endpoint)


def multipart(metadata: str) -> tuple[bytes, str]:
    parts = (
        f"--b\r\nContent-Type: application/json\r\n\r\n{metadata}\r\n--b\r\nContent-Type: text/plain\r\n\r\nx\r\n--b--"
    )
    return parts.encode(), "multipart/related; boundary=b"


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_name_that_leads_out_of_its_folder_is_neither_written_nor_read_nor_deleted(raw: Raw, name: str) -> None:
    encoded = quote(name, safe="")
    body, kind = multipart(json.dumps({"name": name}))
    asked = [
        raw("POST", f"{UPLOAD}?uploadType=media&name={encoded}", b"x"),
        raw("POST", f"{UPLOAD}?uploadType=multipart", body, Content_Type=kind),
        raw("POST", f"{UPLOAD}?uploadType=multipart&name=good", body, Content_Type=kind),
        raw("POST", f"{UPLOAD}?uploadType=resumable", json.dumps({"name": name}).encode()),
        raw("POST", f"{UPLOAD}?uploadType=resumable&name={encoded}", b"{}"),
        raw("GET", f"{OBJECTS}/{encoded}?alt=media"),
        raw("GET", f"/download{OBJECTS}/{encoded}?alt=media"),
        raw("GET", f"/local-llm-work/{encoded}"),
        raw("PUT", f"/local-llm-work/{encoded}", b"x"),
        raw("DELETE", f"{OBJECTS}/{encoded}"),
        raw("POST", f"{OBJECTS}/a/rewriteTo/b/local-llm-work/o/{encoded}", b"{}"),
        raw("POST", f"{OBJECTS}/{encoded}/rewriteTo/b/local-llm-work/o/a", b"{}"),
        raw("POST", f"{OBJECTS}/a/compose", json.dumps({"sourceObjects": [{"name": name}]}).encode()),
    ]
    assert {status for status, _ in asked} == {400}


@pytest.mark.parametrize("path", ["/storage/v1/b/../o/x", "/storage/v1/b/..%2Fx/o/y", "/../../etc/passwd", "/%2e%2e/x"])
def test_a_path_that_leads_out_is_refused(raw: Raw, path: str) -> None:
    assert raw("GET", path)[0] == 400


@pytest.mark.parametrize("name", INSIDE)
def test_a_name_that_stays_inside_is_an_object_like_any_other(bucket: Any, name: str) -> None:
    blob = bucket.blob(name)
    blob.upload_from_string(b"inside")
    assert bucket.blob(name).download_as_bytes() == b"inside"
    blob.delete()


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", ["/batch/storage/v1", "/local-llm-work", "/local-llm-work/x", "/_internal/config"])
def test_what_the_proxy_does_not_understand_changes_nothing(method: str, path: str) -> None:
    assert refusal_of(method, path, "", []) is not None


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ('{"name": "a", "name": "../b"}', "../b"),
        ('{"name": "a", "NAME": "../b"}', "../b"),
        ('{"Name": "../b", "metadata": {"name": "c"}}', "../b"),
        ('["name"]', ""),
        ("not json", ""),
    ],
)
def test_a_name_is_read_as_the_server_behind_reads_it(metadata: str, name: str) -> None:
    assert name_in_metadata(metadata.encode()) == name
