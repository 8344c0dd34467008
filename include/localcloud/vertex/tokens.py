"""Access tokens: an OAuth token endpoint and the IAM Credentials API, which grant everybody and say who asked."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse

from localcloud.vertex.errors import ApiError
from localcloud.vertex.faults import Faults
from localcloud.vertex.journal import Journal

LIFETIME = timedelta(hours=1)
_PREFIX = "local:"


def add_token_routes(app: FastAPI, journal: Journal, faults: Faults) -> None:
    """Add both; a token is the name of the account that it is for, so that a later call tells who makes it."""

    @app.post("/token")
    async def token(request: Request) -> Any:
        form = parse_qs((await request.body()).decode(errors="replace"))
        claims = _claims(form.get("assertion", [""])[0])
        account = str(claims.get("sub") or claims.get("iss") or "somebody")
        failure = faults.take_token_failure()
        journal.add("token_request", grant=form.get("grant_type", [""])[0], chain=[account], failed=failure)
        if failure is not None:
            return _failed(failure)
        return {"access_token": _PREFIX + account, "expires_in": int(LIFETIME.total_seconds()), "token_type": "Bearer"}

    @app.post("/v1/projects/-/serviceAccounts/{account}:generateAccessToken")
    async def impersonate(account: str, request: Request) -> Any:
        body = _json(await request.body())
        delegates = [str(name).rpartition("/")[2] for name in body.get("delegates") or []]
        chain = [caller(request.headers.get("authorization", "")), *delegates, account]
        journal.add("token_request", grant="generateAccessToken", chain=chain, failed=None)
        expires = datetime.now(UTC) + LIFETIME
        return {"accessToken": _PREFIX + account, "expireTime": expires.strftime("%Y-%m-%dT%H:%M:%SZ")}


def caller(authorization: str) -> str:
    """Return the account in a header that carries a token of ours; a token of somebody else is not written down."""
    token = authorization.removeprefix("Bearer ")
    if token.startswith(_PREFIX):
        return token.removeprefix(_PREFIX)
    return "unknown" if token else "anonymous"


def _failed(failure: str) -> Any:
    if failure == "not_json":
        return PlainTextResponse("<html>Please accept the terms of this network</html>")
    # https://www.rfc-editor.org/rfc/rfc6749#section-5.2, with Google's words for a key that was deleted.
    body = {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}
    return JSONResponse(body, 400)


def _claims(assertion: str) -> dict[str, Any]:
    """What a signed JWT says; nobody checks its signature here."""
    payload = f"{assertion}..".split(".")[1]
    return _json(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


def _json(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data or b"{}")
    except ValueError as error:
        raise ApiError(400, f"Invalid JSON payload received. {error}") from None
    return value if isinstance(value, dict) else {}
