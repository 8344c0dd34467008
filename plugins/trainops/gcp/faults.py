"""What went wrong at a Google service, told in the errors of Trainops."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from trainops.errors import (
    AccessError,
    NotFoundError,
    NotSentError,
    RequestRefused,
    ServiceError,
    TrainopsError,
    TransientError,
    WriteConflict,
)
from trainops.gcp.token_faults import token_error

Translator = Callable[[BaseException, str], ServiceError | None]
"""Turns an exception of a client library into one of ours; None when it does not know it."""

_TRANSIENT = {408, 425, 429, 499}
"""Beside the 5xx: too late, too early, too many, and CANCELLED. Nobody here cancels a call, so something on the way
did, and it is not known whether it was carried out."""

_NOT_IMPLEMENTED = 501
"""UNIMPLEMENTED, the one 5xx that is an answer for good."""

_ABORTED = "ABORTED"
"""The google.rpc.Code of a 409 that asks to be tried again; the other one, ALREADY_EXISTS, is an answer for good."""

_LONGEST_TEXT = 2000


def service_error(status: int, message: str, code: str = "") -> ServiceError:
    """Return the error that a refusal stands for; 429 is transient here, `Vertex.create` makes more of it.

    :param status: of HTTP.
    :param code: name of its google.rpc.Code, where the reply tells one. What they mean and which status they come with:
        https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto
    """
    if status in _TRANSIENT or (status >= 500 and status != _NOT_IMPLEMENTED):
        return TransientError(message, status=status)
    if status == 409 and code == _ABORTED:
        return TransientError(message, status=status)
    if status in {401, 403}:
        return AccessError(message, status=status)
    if status == 404:
        return NotFoundError(message, status=status)
    if status == 412:
        return WriteConflict(message, status=status)
    return RequestRefused(message, status=status)


def reply_text(response: Any) -> str:
    """Return Google's own message out of an HTTP reply, or the reply's first characters where there is none."""
    try:
        message = response.json()["error"]["message"]
    except (ValueError, KeyError, TypeError):
        message = response.text or response.reason or ""
    return str(message).strip()[:_LONGEST_TEXT]


def reply_code(response: Any) -> str:
    """Return the name of the google.rpc.Code in an HTTP reply; empty where there is none."""
    try:
        return str(response.json()["error"]["status"])
    except (ValueError, KeyError, TypeError):
        return ""


@contextmanager
def service_errors(what: str, *translators: Translator) -> Generator[None]:
    """Raise what client libraries raise inside the block as the `ServiceError` family.

    :param what: the request in words, as the beginning of the message: "reading gs://...".
    :param translators: asked first, for exceptions of one client library.
    """
    try:
        yield
    except TrainopsError:
        raise
    except Exception as error:
        for translate in (*translators, connection_error):
            told = translate(error, what)
            if told is not None:
                raise told from error
        raise


def not_sent(error: BaseException, what: str) -> ServiceError | None:
    """Tell of a request that certainly never left; for clients that ask once, since a second try hides the first."""
    import requests
    from urllib3.exceptions import NewConnectionError

    token = token_error(error, what)
    if isinstance(token, TransientError):
        return NotSentError(str(token))
    reason = getattr(error.args[0], "reason", None) if error.args else None
    if isinstance(error, requests.ConnectTimeout) or isinstance(reason, NewConnectionError):
        return NotSentError(f"{what}: no connection: {error}")
    return None


def connection_error(error: BaseException, what: str) -> ServiceError | None:
    """Translate what `requests` and `google.auth` raise when no reply came."""
    import requests

    token = token_error(error, what)
    if token is not None:
        return token
    # A reply that is not JSON where JSON was promised comes from something between us and Google.
    if isinstance(error, (requests.RequestException, ConnectionError, TimeoutError)):
        return TransientError(f"{what}: no reply: {error}")
    return None
