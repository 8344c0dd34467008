"""What a request to the JSON API does: which object it reads or writes."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import parse_qs, unquote

_OBJECT = re.compile(r"^(?:/download)?/storage/v1/b/(?P<bucket>[^/]+)/o/(?P<object>[^/]+)$")
_COMPOSE = re.compile(r"^/storage/v1/b/(?P<bucket>[^/]+)/o/(?P<object>[^/]+)/compose$")
_COPY = re.compile(
    r"^/storage/v1/b/(?P<source_bucket>[^/]+)/o/(?P<source>[^/]+)/(?:rewriteTo|copyTo)/b/(?P<bucket>[^/]+)/o/(?P<object>[^/]+)$"
)
_UPLOAD = re.compile(r"^(?:/resumable)?/upload/storage/v1/b/(?P<bucket>[^/]+)/o$")
_LAST_CHUNK = re.compile(r"^bytes (?:(?P<first>\d+)-(?P<last>\d+)|\*)/(?P<total>\d+|\*)$")


class Kind(StrEnum):
    """What a request does to its object."""

    READ = "read"
    DELETE = "delete"
    UPDATE = "update"
    WRITE = "write"
    COPY = "copy"
    UPLOAD = "upload"
    RESUMABLE_START = "resumable-start"
    RESUMABLE_CHUNK = "resumable-chunk"
    OTHER = "other"


MUTATIONS = frozenset(Kind) - {Kind.READ, Kind.OTHER}


@dataclass(frozen=True)
class ObjectName:
    """An object of a bucket, in plain text (nothing percent-encoded)."""

    bucket: str
    name: str


@dataclass(frozen=True)
class Operation:
    """One request, understood. An upload's `target` may have no name yet: it stands in the body."""

    kind: Kind
    target: ObjectName | None = None
    source: ObjectName | None = None


def parse_operation(method: str, raw_path: str, query: str) -> Operation:
    """Understand a request by its method, its percent-encoded path and its query string."""
    if match := _UPLOAD.match(raw_path):
        return _parse_upload(method, _plain(match["bucket"]), query)
    if match := _COPY.match(raw_path):
        target, source = _name(match["bucket"], match["object"]), _name(match["source_bucket"], match["source"])
        return Operation(Kind.COPY, target, source)
    if match := _COMPOSE.match(raw_path):
        return Operation(Kind.WRITE, _name(match["bucket"], match["object"]))
    if match := _OBJECT.match(raw_path):
        kinds = {"GET": Kind.READ, "HEAD": Kind.READ, "DELETE": Kind.DELETE, "PATCH": Kind.UPDATE, "PUT": Kind.UPDATE}
        return Operation(kinds.get(method, Kind.OTHER), _name(match["bucket"], match["object"]))
    return Operation(Kind.OTHER)


def ends_upload(content_range: str | None) -> bool:
    """Say whether a PUT of a resumable upload carries its last byte, and so creates the object."""
    if content_range is None:
        return True
    match = _LAST_CHUNK.match(content_range)
    if match is None or match["total"] == "*":
        return False
    # "bytes */N" asks how far the upload has come; it also ends one of zero bytes.
    return match["last"] is None or int(match["last"]) + 1 == int(match["total"])


def name_in_metadata(text: bytes) -> str:
    """Read the object's name from the JSON metadata of an upload; "" when it has none.

    As the server behind reads it: it takes a key in any case, and of several the last.
    """
    try:
        value = json.loads(text or b"{}", object_pairs_hook=list)
    except ValueError:
        return ""
    named = [found for pair in value if isinstance(pair, tuple) for key, found in [pair] if key.lower() == "name"]
    return str(named[-1]) if isinstance(value, list) and named else ""


def _parse_upload(method: str, bucket: str, query: str) -> Operation:
    parameters = parse_qs(query)
    target = ObjectName(bucket, parameters.get("name", [""])[0])
    if "upload_id" in parameters:
        return Operation(Kind.RESUMABLE_CHUNK if method == "PUT" else Kind.OTHER, target)
    resumable = parameters.get("uploadType") == ["resumable"]
    return Operation(Kind.RESUMABLE_START if resumable else Kind.UPLOAD, target)


def _name(bucket: str, name: str) -> ObjectName:
    return ObjectName(_plain(bucket), _plain(name))


def _plain(text: str) -> str:
    return unquote(text)
