"""One request through the proxy: understand it, hold its preconditions under the object's lock, forward it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from email.utils import formatdate
from typing import Any
from urllib.parse import unquote, urlencode
from weakref import WeakValueDictionary

import httpx
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from localcloud.storage.body import once, peek_name, read_all
from localcloud.storage.faults import Fault, Faults, fault_body
from localcloud.storage.journal import Journal
from localcloud.storage.names import is_compose, names_of_sources, refusal_of
from localcloud.storage.operation import (
    MUTATIONS,
    Kind,
    ObjectName,
    Operation,
    ends_upload,
    name_in_metadata,
    parse_operation,
)
from localcloud.storage.preconditions import NAMES, BadPrecondition, Preconditions, refusal_body
from localcloud.storage.upstream import Upstream, end_to_end


class Proxy:
    """Passes the JSON API on to `upstream`, and keeps what it does not."""

    def __init__(self, upstream: Upstream, faults: Faults, journal: Journal) -> None:
        self._upstream = upstream
        self._faults = faults
        self._journal = journal
        self._locks: WeakValueDictionary[ObjectName, asyncio.Lock] = WeakValueDictionary()

    async def handle(self, request: Request) -> Response:
        """Answer one request; an error of the server behind becomes a 503, which clients try again."""
        started = time.monotonic()
        operation, body, others = await _understand(request)
        path = unquote(_target(request))
        name = f"{operation.target.bucket}/{operation.target.name}" if operation.target else ""
        named = [target.name for target in (operation.target, operation.source) if target is not None]
        refusal = refusal_of(
            request.method, request.scope["raw_path"].decode("ascii"), request.url.query, named + others
        )
        fault = None if refusal else self._faults.hit(request.method, f"{path} {name}")
        try:
            if refusal is not None:
                response: Response = JSONResponse({"error": {"code": 400, "message": refusal}}, 400)
            else:
                response = await self._answer(request, operation, body, fault)
        except BadPrecondition as error:
            response = JSONResponse({"error": {"code": 400, "message": str(error)}}, 400)
        except httpx.HTTPError as error:
            message = f"storage server: {type(error).__name__}: {error}"
            response = JSONResponse({"error": {"code": 503, "message": message}}, 503)
        response.headers["date"] = formatdate(usegmt=True)
        milliseconds = round((time.monotonic() - started) * 1000, 1)
        entry: dict[str, Any] = {"method": request.method, "path": path, "status": response.status_code}
        if fault is not None:
            entry["fault"] = "stored" if fault.stored else "refused"
        self._journal.add(**entry, object=name, operation=operation.kind, ms=milliseconds)
        return response

    async def _answer(
        self, request: Request, operation: Operation, body: AsyncIterator[bytes], fault: Fault | None
    ) -> Response:
        if fault is not None and not fault.stored:
            return JSONResponse(fault_body(fault.status), fault.status)
        response = await self._carry_out(request, operation, body)
        if fault is None:
            return response
        if isinstance(response, StreamingResponse):  # drain, so that the object is stored to its last byte
            async for _ in response.body_iterator:
                pass
        return JSONResponse(fault_body(fault.status), fault.status)

    async def _carry_out(self, request: Request, operation: Operation, body: AsyncIterator[bytes]) -> Response:
        query = request.url.query
        wanted, of_source = Preconditions.of_query(query), Preconditions.of_query(query, source=True)
        lasting = operation.kind is not Kind.RESUMABLE_CHUNK or ends_upload(request.headers.get("content-range"))
        async with AsyncExitStack() as held:
            if operation.target is not None and operation.kind in MUTATIONS and lasting:
                await held.enter_async_context(self._lock(operation.target))
            reading = operation.kind is Kind.READ
            status = await self._refusal(operation.target, wanted, reading=reading) if lasting else None
            status = status or await self._refusal(operation.source, of_source, reading=False)
            if status is not None:
                return _refuse(status)
            return await self._forward(request, operation, body)

    async def _refusal(self, target: ObjectName | None, wanted: Preconditions, *, reading: bool) -> int | None:
        if target is None or not wanted:
            return None
        return wanted.refusal(await self._upstream.version(target), reading=reading)

    async def _forward(self, request: Request, operation: Operation, body: AsyncIterator[bytes]) -> Response:
        answer = await self._upstream.forward(request.method, _target(request), request.headers.items(), body)
        if operation.kind in MUTATIONS:  # the whole answer, so that the lock is held until the object is stored
            content = await answer.aread()
            await answer.aclose()
            response = Response(content, answer.status_code)
        else:
            response = StreamingResponse(
                answer.aiter_raw(), answer.status_code, background=BackgroundTask(answer.aclose)
            )
        names = end_to_end(answer.headers.multi_items())
        response.raw_headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in names]
        if operation.kind is Kind.RESUMABLE_START and operation.target is not None and "location" in answer.headers:
            response.headers["location"] = _location(answer.headers["location"], operation.target, request.url.query)
        return response

    def _lock(self, target: ObjectName) -> asyncio.Lock:
        lock = self._locks.get(target)
        if lock is None:
            lock = self._locks[target] = asyncio.Lock()
        return lock


async def _understand(request: Request) -> tuple[Operation, AsyncIterator[bytes], list[str]]:
    """Parse the request; the name of an upload is looked for in its body when it is not in the query.

    What the body names beside the target comes as the last part.
    """
    raw_path = request.scope["raw_path"].decode("ascii")
    operation = parse_operation(request.method, raw_path, request.url.query)
    stream = request.stream()
    if is_compose(raw_path):
        sources = await read_all(stream)
        return operation, once(sources), names_of_sources(sources)
    if operation.target is None or operation.kind not in {Kind.UPLOAD, Kind.RESUMABLE_START}:
        return operation, stream, []
    if operation.target.name and "uploadType=media" in request.url.query:
        return operation, stream, []
    if operation.kind is Kind.RESUMABLE_START:
        metadata = await read_all(stream)
        name, body = name_in_metadata(metadata), once(metadata)
    else:
        name, body = await peek_name(stream)
    if operation.target.name:  # the query's counts, if both are there
        return operation, body, [name]
    return replace(operation, target=replace(operation.target, name=name)), body, []


def _target(request: Request) -> str:
    path: str = request.scope["raw_path"].decode("ascii")
    return f"{path}?{request.url.query}" if request.url.query else path


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
