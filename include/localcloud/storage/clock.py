"""The server's clock as it is told: it may be off, and then all times in headers and in resources are."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta
from email.utils import formatdate, parsedate_to_datetime
from typing import Any

from starlette.responses import Response

_TIMES = frozenset({
    "timeCreated", "updated", "timeStorageClassUpdated", "timeFinalized", "timeDeleted",
})  # fmt: skip
"""Fields of a resource that the server stamps: https://cloud.google.com/storage/docs/json_api/v1/objects#resource."""


def set_clock(response: Response, skew: float, *, resource: bool) -> None:
    """Give an answer the `Date` of a clock that is `skew` seconds ahead, and move the other times that it tells.

    :param resource: the body is of the JSON API's own, not an object's content; one that is streamed is left alone.
    """
    response.headers["date"] = formatdate(time.time() + skew, usegmt=True)
    if not skew:
        return
    if "last-modified" in response.headers:
        moment = parsedate_to_datetime(response.headers["last-modified"]) + timedelta(seconds=skew)
        response.headers["last-modified"] = formatdate(moment.timestamp(), usegmt=True)
    body = getattr(response, "body", b"")
    if body and resource and response.headers.get("content-type", "").startswith("application/json"):
        response.body = json.dumps(_moved(json.loads(body), skew)).encode()
        response.headers["content-length"] = str(len(response.body))


def _moved(value: Any, skew: float) -> Any:
    if isinstance(value, list):
        return [_moved(item, skew) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _later(item, skew) if key in _TIMES else _moved(item, skew) for key, item in value.items()}


def _later(moment: Any, skew: float) -> Any:
    try:
        later = datetime.fromisoformat(moment) + timedelta(seconds=skew)
    except (TypeError, ValueError):
        return moment
    return later.isoformat(timespec="microseconds").replace("+00:00", "Z")
