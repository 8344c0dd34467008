"""Page tokens: the place of the last item of a page, so that a list that grows is neither cut nor repeated."""

from __future__ import annotations

import base64
import json

from localcloud.vertex.errors import ApiError

Place = tuple[str, str]
"""Time and id: what lists are ordered by."""


def encode_place(place: Place) -> str:
    """Return the token that goes on after `place`."""
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def decode_place(token: str | None) -> Place | None:
    """Return the place of a token, None without one; ApiError 400 for a token that is not ours."""
    if not token:
        return None
    try:
        moment, item = json.loads(base64.b64decode(token, altchars=b"-_", validate=True))
    except ValueError:
        raise ApiError(400, "page_token is invalid.") from None
    return str(moment), str(item)


def page_size(value: object, default: int) -> int:
    """Return how many items a page has, at most 1000; ApiError 400 for what is no size."""
    if not str(value).isdecimal():
        raise ApiError(400, f"Invalid value at 'page_size' (TYPE_INT32), {json.dumps(value)}")
    return min(int(str(value)) or default, 1000)
