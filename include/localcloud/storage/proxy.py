"""One request through the proxy: understand it, hold its preconditions under the object's lock, forward it."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import unquote, urlencode
from weakref import WeakValueDictionary

import httpx
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from localcloud.holds import Holds
from localcloud.storage.call import Call, understand
from localcloud.storage.clock import set_clock
from localcloud.storage.faults import Armed, Fault, Faults, fault_body
from localcloud.storage.journal import Journal
from localcloud.storage.operation import MUTATIONS, Kind, ObjectName, ends_upload
from localcloud.storage.preconditions import NAMES, BadPrecondition, Preconditions, refusal_body
from localcloud.storage.rewrites import BadToken, Rewrite
from localcloud.storage.upstream import Upstream, end_to_end


class Proxy:
    """Passes the JSON API on to `upstream`, and keeps what it does not."""

    def __init__(self, upstream: Upstream, faults: Faults, holds: Holds, journal: Journal) -> None:
        self._upstream = upstream
        self._faults = faults
        self._holds = holds
        self._journal = journal
        self._locks: WeakValueDictionary[ObjectName, asyncio.Lock] = WeakValueDictionary()

    async def handle(self, request: Request) -> Response:
        """Answer one request, as the faults say."""
        started = time.monotonic()
        call = await understand(request)
        refusal = call.refusal
        armed = None if refusal else self._faults.hit(request.method, call.text, begins_rewrite=call.begins_rewrite)
        hold = armed if armed is not None and armed.fault.hold else None
        if hold is not None and not hold.fault.stored:
            await call.keep_body()
            await self._hold(hold, call)
        if refusal is not None:
            response = _error(400, refusal)
        else:
            response = await self._answer(call, armed.fault if armed else None)
        set_clock(response, self._faults.skew(), resource=call.asks_for_resource)
        self._write_down(call, response, armed, started)
        if hold is not None and hold.fault.stored:
            await self._hold(hold, call)
        return response

    def _write_down(self, call: Call, response: Response, armed: Armed | None, started: float) -> None:
        entry: dict[str, Any] = {"method": call.request.method, "path": unquote(call.target)}
        entry["status"] = response.status_code
        if armed is not None:
            entry |= _mark(armed.fault)
        milliseconds = round((time.monotonic() - started) * 1000, 1)
        self._journal.add(**entry, object=call.object, operation=call.operation.kind, ms=milliseconds)

    async def _hold(self, armed: Armed, call: Call) -> None:
        shown = {"method": call.request.method, "path": unquote(call.target), "object": call.object}
        await self._holds.hold(armed.id, armed.fault.hold, **shown)

    async def _answer(self, call: Call, fault: Fault | None) -> Response:
        """Carry out and answer; an error of the server behind is a 503, which clients try again."""
        wrong = fault is not None and fault.does == "status"
        if fault is not None and wrong and not fault.stored:
            return JSONResponse(fault_body(fault.status), fault.status)
        try:
            response = await self._carry_out(call, fault)
        except (BadPrecondition, BadToken) as error:
            return _error(400, str(error))
        except httpx.HTTPError as error:
            return _error(503, f"storage server: {type(error).__name__}: {error}")
        return JSONResponse(fault_body(fault.status), fault.status) if fault is not None and wrong else response

    async def _carry_out(self, call: Call, fault: Fault | None) -> Response:
        operation = call.operation
        wanted, of_source = Preconditions.of_query(call.query), Preconditions.of_query(call.query, source=True)
        lasting = operation.kind is not Kind.RESUMABLE_CHUNK or ends_upload(call.request.headers.get("content-range"))
        async with AsyncExitStack() as held:
            if operation.target is not None and operation.kind in MUTATIONS and lasting:
                await held.enter_async_context(self._lock(operation.target))
            reading = operation.kind is Kind.READ
            status = await self._refusal(operation.target, wanted, reading=reading) if lasting else None
            status = status or await self._refusal(operation.source, of_source, reading=False)
            if status is not None:
                return _refuse(status)
            rewrite = await self._rewrite(call, fault)
            if rewrite is not None:
                return JSONResponse(rewrite.body())
            # A change is answered when it is stored to its last byte, and the lock held until then.
            whole = operation.kind in MUTATIONS or fault is not None
            return await self._forward(call, whole=whole or (self._faults.skew() != 0 and call.asks_for_resource))

    async def _rewrite(self, call: Call, fault: Fault | None) -> Rewrite | None:
        """How far a rewrite is with this call; None when the call is to be passed on."""
        source = call.operation.source
        rewrite = Rewrite.of_query(call.operation, call.query) if call.is_rewrite else None
        if source is not None and rewrite is None and fault is not None and fault.rewrite_calls:
            size = await self._upstream.size(source)
            if size is not None:  # else the server's own 404 says it
                rewrite = Rewrite.begun(call.operation, size, fault.rewrite_calls)
        return None if rewrite is None or rewrite.is_last else rewrite.call()

    async def _refusal(self, target: ObjectName | None, wanted: Preconditions, *, reading: bool) -> int | None:
        if target is None or not wanted:
            return None
        return wanted.refusal(await self._upstream.version(target), reading=reading)

    async def _forward(self, call: Call, *, whole: bool) -> Response:
        operation = call.operation
        answer = await self._upstream.forward(call.request.method, call.target, call.request.headers.items(), call.body)
        if whole:
            content = b"".join([chunk async for chunk in answer.aiter_raw()])
            response = Response(content, answer.status_code)
        else:
            response = StreamingResponse(
                answer.aiter_raw(), answer.status_code, background=BackgroundTask(answer.aclose)
            )
        names = end_to_end(answer.headers.multi_items())
        response.raw_headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in names]
        if operation.kind is Kind.RESUMABLE_START and operation.target is not None and "location" in answer.headers:
            response.headers["location"] = _location(answer.headers["location"], operation.target, call.query)
        return response

    def _lock(self, target: ObjectName) -> asyncio.Lock:
        lock = self._locks.get(target)
        if lock is None:
            lock = self._locks[target] = asyncio.Lock()
        return lock


def _mark(fault: Fault) -> dict[str, Any]:
    """How the journal tells of a fault."""
    if fault.hold:
        return {"held": True}
    return {"fault": "rewrite" if fault.rewrite_calls else "stored" if fault.stored else "refused"}


def _error(status: int, message: str) -> Response:
    return JSONResponse({"error": {"code": status, "message": message}}, status)


def _location(location: str, target: ObjectName, query: str) -> str:
    """Carry name and preconditions in the upload's address, so that they survive a restart of the proxy."""
    present = httpx.URL(location).params
    wanted = dict(httpx.QueryParams(query))
    extra = {name: wanted[name] for name in NAMES if name in wanted and name not in present}
    if not present.get("name"):
        extra["name"] = target.name
    return f"{location}&{urlencode(extra)}" if extra else location


def _refuse(status: int) -> Response:
    return (
        Response(status_code=304) if status == httpx.codes.NOT_MODIFIED else JSONResponse(refusal_body(status), status)
    )
