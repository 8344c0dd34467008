"""Why an access token could not be had: what may pass, and what somebody must mend.

`google.auth` raises RefreshError for both, so the answer of the token endpoint tells: an OAuth error (RFC 6749, 5.2) or
a 4xx of the IAM Credentials API is an answer for good; everything else, also what is no answer at all, may pass.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from typing import Any

from trainops.errors import AccessError, ServiceError, TransientError

LOG_IN = "run `gcloud auth application-default login`, or give the Airflow connection a key"
_NEW_KEY = (
    "the key was deleted or its account disabled, the login has expired, or this machine's clock is wrong: give the "
    "Airflow connection a new key, or run `gcloud auth application-default login`"
)
_FOR_GOOD = {
    "invalid_grant": _NEW_KEY,
    "invalid_client": _NEW_KEY,
    "unauthorized_client": _NEW_KEY,
    "access_denied": _NEW_KEY,
    "invalid_scope": "the credentials may not have the scope cloud-platform",
    "invalid_request": "the credentials' file is not one of Google's for this use",
    "unsupported_grant_type": "the credentials' file is not one of Google's for this use",
}
_ACT_AS = (
    "give the credentials' own account, and each account of impersonation_chain but the last, the role "
    "roles/iam.serviceAccountTokenCreator on the next account of the chain"
)
_MAY_PASS = frozenset({408, 425, 429})
_TRANSPORT = "google.auth.transport.requests"
"""Holds the session of every request, not only those for tokens."""


def token_error(error: BaseException, what: str) -> ServiceError | None:
    """Return the error that a failed request for a token stands for; None when `error` is of another kind.

    :param what: the request that the token was for.
    """
    from google.auth import exceptions as auth

    if isinstance(error, auth.DefaultCredentialsError):
        return AccessError(f"{what}: no Google credentials found; {LOG_IN}")
    if isinstance(error, auth.ReauthFailError):
        return AccessError(f"{what}: the login must be renewed: {_text(error)}; {LOG_IN}", status=401)
    if isinstance(error, auth.RefreshError):
        return _refused(error, what)
    # google.auth looks into a reply that is not what it should be without asking what it is: TypeError, ValueError.
    if isinstance(error, auth.GoogleAuthError) or (isinstance(error, Exception) and _raised_by_google_auth(error)):
        return TransientError(f"{what}: the access token could not be had: {_text(error)}")
    return None


def _refused(error: BaseException, what: str) -> ServiceError:
    answer = _answer(error)
    told = answer.get("error")
    if isinstance(told, str) and told in _FOR_GOOD:
        said = f"{told}: {answer['error_description']}" if answer.get("error_description") else told
        return AccessError(f"{what}: no access token is given: {said}; {_FOR_GOOD[told]}", status=401)
    code = told.get("code") if isinstance(told, Mapping) else None
    if isinstance(told, Mapping) and isinstance(code, int) and 400 <= code < 500 and code not in _MAY_PASS:
        said = f"{told.get('message', 'no reason given')} (HTTP {code})"
        return AccessError(f"{what}: no access token is given: {said}; {_ACT_AS}", status=code)
    return TransientError(f"{what}: the access token could not be had: {_text(error)}")


def _answer(error: BaseException) -> Mapping[str, Any]:
    """The JSON object that the token endpoint answered with; empty when it answered with something else."""
    for part in error.args:
        value = part
        if isinstance(part, str):
            try:
                value = json.loads(part)
            except ValueError:
                continue
        if isinstance(value, Mapping):
            return value
    return {}


def _raised_by_google_auth(error: Exception) -> bool:
    modules = (str(frame.f_globals.get("__name__", "")) for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(name.startswith(("google.auth.", "google.oauth2.")) and name != _TRANSPORT for name in modules)


def _text(error: BaseException) -> str:
    """The first part of the error's text: some have the whole reply as a second one."""
    return str(error.args[0] if error.args else error)[:500]
