"""The HTTP application: the JSON API of Cloud Storage, and beside it `/faults`, `/holds`, `/journal`, `/healthz`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from localcloud.holds import Holds
from localcloud.storage.faults import Fault, Faults
from localcloud.storage.journal import Journal
from localcloud.storage.proxy import Proxy
from localcloud.storage.upstream import Upstream

_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


def create_app(upstream_url: str, journal_path: Path, buckets: Sequence[str] = ()) -> FastAPI:
    """Build the proxy before the fake-gcs-server at `upstream_url`; `buckets` exist before it is healthy."""
    upstream, faults, journal = Upstream(upstream_url), Faults(), Journal(journal_path)
    holds = Holds()
    proxy = Proxy(upstream, faults, holds, journal)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        await _ensure_buckets(upstream, buckets)
        try:
            yield
        finally:
            await upstream.close()
            journal.close()

    app = FastAPI(lifespan=lifespan, openapi_url=None)

    @app.get("/healthz")
    async def healthz() -> Response:
        alive = await upstream.is_alive()
        return JSONResponse({"status": "ok" if alive else "storage server does not answer"}, 200 if alive else 503)

    _add_fault_routes(app, faults)
    _add_hold_routes(app, holds)

    @app.get("/journal")
    async def entries(after: int = 0) -> list[dict[str, object]]:
        return journal.entries(after)

    @app.api_route("/{path:path}", methods=_METHODS)
    async def storage(request: Request) -> Response:
        return await proxy.handle(request)

    return app


def _add_fault_routes(app: FastAPI, faults: Faults) -> None:
    @app.post("/faults")
    async def arm(fault: Fault) -> dict[str, str]:
        return {"id": faults.arm(fault)}

    @app.get("/faults")
    async def pending() -> list[dict[str, object]]:
        return faults.pending()

    @app.delete("/faults")
    async def disarm_all() -> dict[str, int]:
        return {"removed": faults.disarm()}

    @app.delete("/faults/{fault_id}")
    async def disarm(fault_id: str) -> Response:
        if not faults.disarm(fault_id):
            return JSONResponse({"detail": f"There is no fault {fault_id}: it was removed, or has struck."}, 404)
        return JSONResponse({"removed": 1})


def _add_hold_routes(app: FastAPI, holds: Holds) -> None:
    @app.get("/holds")
    async def held() -> list[dict[str, object]]:
        return holds.held()

    @app.delete("/holds")
    async def release_all() -> dict[str, int]:
        return {"released": holds.release()}

    @app.delete("/holds/{fault_id}")
    async def release(fault_id: str) -> dict[str, int]:
        return {"released": holds.release(fault_id)}


async def _ensure_buckets(upstream: Upstream, buckets: Sequence[str]) -> None:
    for attempt in range(60):
        try:
            for bucket in buckets:
                await upstream.ensure_bucket(bucket)
        except httpx.HTTPError:
            if attempt == 59:
                raise
            await asyncio.sleep(0.5)  # fake-gcs-server was started a moment ago
        else:
            return
