"""What each refusal of a Google service stands for."""

from __future__ import annotations

import json
from typing import Any

import pytest
import requests
from google.api_core import exceptions as api

from trainops.errors import (
    AccessError,
    NotFoundError,
    RequestRefused,
    ServiceError,
    TransientError,
    WriteConflict,
)
from trainops.gcp.faults import reply_code, service_error
from trainops.gcp.storage import _storage_error

CODES: list[tuple[str, int, type[ServiceError]]] = [
    ("CANCELLED", 499, TransientError),
    ("UNKNOWN", 500, TransientError),
    ("INVALID_ARGUMENT", 400, RequestRefused),
    ("DEADLINE_EXCEEDED", 504, TransientError),
    ("NOT_FOUND", 404, NotFoundError),
    ("ALREADY_EXISTS", 409, RequestRefused),
    ("PERMISSION_DENIED", 403, AccessError),
    ("UNAUTHENTICATED", 401, AccessError),
    ("RESOURCE_EXHAUSTED", 429, TransientError),
    ("FAILED_PRECONDITION", 400, RequestRefused),
    ("ABORTED", 409, TransientError),
    ("OUT_OF_RANGE", 400, RequestRefused),
    ("UNIMPLEMENTED", 501, RequestRefused),
    ("INTERNAL", 500, TransientError),
    ("UNAVAILABLE", 503, TransientError),
    ("DATA_LOSS", 500, TransientError),
]
"""Every google.rpc.Code but OK, with the HTTP status that it comes with."""

STATUSES: list[tuple[int, type[ServiceError]]] = [
    (302, RequestRefused),
    (400, RequestRefused),
    (401, AccessError),
    (403, AccessError),
    (404, NotFoundError),
    (405, RequestRefused),
    (408, TransientError),
    (409, RequestRefused),
    (410, RequestRefused),
    (412, WriteConflict),
    (413, RequestRefused),
    (416, RequestRefused),
    (425, TransientError),
    (429, TransientError),
    (499, TransientError),
    (500, TransientError),
    (501, RequestRefused),
    (502, TransientError),
    (503, TransientError),
    (504, TransientError),
    (529, TransientError),
]
"""HTTP statuses of replies that tell no code: of Cloud Storage, of proxies and load balancers."""


def reply(status: int, text: str) -> requests.Response:
    made = requests.Response()
    made.status_code = status
    made._content = text.encode()
    return made


@pytest.mark.parametrize(("code", "status", "error"), CODES)
def test_every_code_of_google_is_told_as_one_of_our_errors(code: str, status: int, error: type[ServiceError]) -> None:
    body = reply(status, json.dumps({"error": {"code": status, "message": "why", "status": code}}))
    found = service_error(status, "why", reply_code(body))
    assert (type(found), found.status) == (error, status)


def test_the_table_has_every_code_that_google_has() -> None:
    from google.rpc.code_pb2 import Code  # type: ignore[import-untyped]

    assert {code for code, _, _ in CODES} == set(Code.keys()) - {"OK"}


@pytest.mark.parametrize(("status", "error"), STATUSES)
def test_a_status_without_a_code_is_told_by_itself(status: int, error: type[ServiceError]) -> None:
    found = service_error(status, "why", reply_code(reply(status, "<html>no JSON</html>")))
    assert (type(found), found.status) == (error, status)


@pytest.mark.parametrize("text", ["", "[]", '"x"', "null", '{"error": "invalid_grant"}', '{"error": {"message": "x"}}'])
def test_a_reply_without_a_code_has_none(text: str) -> None:
    assert reply_code(reply(409, text)) == ""


@pytest.mark.parametrize(("code", "error"), [("ABORTED", TransientError), ("ALREADY_EXISTS", RequestRefused)])
def test_cloud_storage_is_told_alike(code: str, error: type[ServiceError]) -> None:
    body = reply(409, json.dumps({"error": {"code": 409, "message": "why", "status": code}}))
    factory: Any = api.Conflict
    assert type(_storage_error(factory("why", response=body), "writing gs://my-bucket/x")) is error
