"""What stands before the application: writes the journal, and answers or drops calls as the faults say."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

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

_CONTROL = ("/healthz", "/journal", "/faults", "/quotas")


class Gate:
    """An ASGI application around another."""

    def __init__(self, application: Application, journal: Journal, faults: Faults) -> None:
        self._application = application
        self._journal = journal
        self._faults = faults

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or scope["path"].startswith(_CONTROL):
            await self._application(scope, receive, send)
            return
        began, arrived = time.monotonic(), clock.now()
        method, job = method_of(scope["method"], scope["path"])
        await asyncio.sleep(self._faults.take_delay(method))
        answer = self._faults.take_answer(method)
        drop = None if answer else self._faults.take_drop(method)
        messages = _refusal(answer) if answer else await _collect(self._application, scope, receive)
        fate = "fault" if answer else "dropped" if drop else "sent"
        # Before the reply, so that whoever has it finds the call in the journal.
        took = round((time.monotonic() - began) * 1000, 1)
        call = {"method": method, "job": job, "status": messages[0]["status"], "reply": fate, "milliseconds": took}
        self._journal.add("call", time=arrived, **call, **_request(scope))
        if drop is not None and drop.status is None:
            await _break_connection(send)
            return
        for message in messages if drop is None else _error(drop.status or 0, "The service is currently unavailable."):
            await send(message)


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
