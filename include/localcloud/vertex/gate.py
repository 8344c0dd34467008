"""What stands before the application: writes the journal, and answers or drops calls as the faults say."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote

from localcloud.holds import Holds
from localcloud.vertex import clock
from localcloud.vertex.errors import ApiError
from localcloud.vertex.faults import Answer, Faults
from localcloud.vertex.journal import Journal
from localcloud.vertex.methods import method_of
from localcloud.vertex.tokens import caller

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_CONTROL = ("/healthz", "/journal", "/faults", "/holds", "/quotas")


class Gate:
    """An ASGI application around another."""

    def __init__(self, application: Application, journal: Journal, faults: Faults, holds: Holds) -> None:
        self._application = application
        self._journal = journal
        self._faults = faults
        self._holds = holds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or scope["path"].startswith(_CONTROL):
            await self._application(scope, receive, send)
            return
        body = await _read(receive)
        if body is not None:  # else the client went away before it had asked
            await self._handle(scope, body, send)

    async def _handle(self, scope: Scope, body: bytes, send: Send) -> None:
        began, arrived = time.monotonic(), clock.now()
        method, job = method_of(scope["method"], scope["path"])
        await asyncio.sleep(self._faults.take_delay(method))
        fault_id, hold = self._faults.take_hold(method, _text(scope, body)) or ("", None)
        shown = {"method": method, "path": scope["path"], "job": job}
        if hold is not None and not hold.stored:
            await self._holds.hold(fault_id, hold.seconds, **shown)
        answer = self._faults.take_answer(method)
        drop = None if answer else self._faults.take_drop(method)
        messages = _refusal(answer) if answer else await _collect(self._application, scope, _replay(body))
        fate = "fault" if answer else "dropped" if drop else "sent"
        # Before the reply, so that whoever has it finds the call in the journal.
        took = round((time.monotonic() - began) * 1000, 1)
        call = {"method": method, "job": job, "status": messages[0]["status"], "reply": fate, "milliseconds": took}
        self._journal.add("call", time=arrived, **call, **({"held": True} if hold else {}), **_request(scope))
        if hold is not None and hold.stored:
            await self._holds.hold(fault_id, hold.seconds, **shown)
        if drop is not None and drop.status is None:
            await _break_connection(send)
            return
        for message in messages if drop is None else _error(drop.status or 0, "The service is currently unavailable."):
            await send(message)


async def _read(receive: Receive) -> bytes | None:
    """Read the whole body; None when the client went away before its end."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _replay(body: bytes) -> Receive:
    """Give the application a body that was read; it never learns that the client went away meanwhile."""

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _text(scope: Scope, body: bytes) -> str:
    query = unquote(scope["query_string"].decode())
    return f"{scope['path']}{'?' if query else ''}{query} {body.decode(errors='replace')}"


def _request(scope: Scope) -> dict[str, str]:
    sent = {name: value.decode(errors="replace") for name, value in scope["headers"]}
    return {
        "http": scope["method"],
        "path": scope["path"],
        "query": scope["query_string"].decode(),
        "agent": sent.get(b"user-agent", ""),
        "caller": caller(sent.get(b"authorization", "")),
        "quota_project": sent.get(b"x-goog-user-project", ""),
    }


async def _collect(application: Application, scope: Scope, receive: Receive) -> list[Message]:
    messages: list[Message] = []

    async def keep(message: Message) -> None:
        messages.append(message)

    await application(scope, receive, keep)
    return messages


def _refusal(answer: Answer) -> list[Message]:
    messages = _error(answer.status, answer.message)
    if answer.retry_after is not None:
        messages[0]["headers"].append((b"retry-after", str(answer.retry_after).encode()))
    return messages


def _error(status: int, message: str) -> list[Message]:
    headers = [(b"content-type", b"application/json; charset=UTF-8")]
    body = json.dumps(ApiError(status, message).body()).encode()
    return [
        {"type": "http.response.start", "status": status, "headers": headers},
        {"type": "http.response.body", "body": body},
    ]


async def _break_connection(send: Send) -> None:
    # ASGI has no message for this. uvicorn's `send` is a method of the request's cycle, which holds the transport.
    transport: asyncio.Transport = send.__self__.transport  # type: ignore[attr-defined]
    transport.abort()
    # The cycle learns of it in the next round of the event loop, and must before this call returns.
    await asyncio.sleep(0.05)
