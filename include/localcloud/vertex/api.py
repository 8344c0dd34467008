"""HTTP: the routes of Vertex AI and Cloud Logging, and the stand-in's own; those for access tokens are in `tokens`."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from localcloud.holds import Holds
from localcloud.vertex.custom_jobs import CustomJobs
from localcloud.vertex.errors import ApiError
from localcloud.vertex.faults import Faults, KillReplica, SpotLoss, parse_fault
from localcloud.vertex.journal import Journal
from localcloud.vertex.logs import Logs
from localcloud.vertex.quota import Quotas, usage
from localcloud.vertex.schema import enums_as_numbers
from localcloud.vertex.store import Store
from localcloud.vertex.strikes import Strikes

_JOBS = "/v1/projects/{project}/locations/{location}/customJobs"
_OPERATION = "/operations/{operation_id}"


def add_vertex_routes(app: FastAPI, jobs: CustomJobs) -> None:
    """Add projects.locations.customJobs and its operations."""

    @app.post(_JOBS)
    async def create(project: str, location: str, request: Request) -> Any:
        body = await _body(request)
        return _job(request, await run_in_threadpool(jobs.create, project, location, body))

    @app.get(_JOBS)
    def list_(project: str, location: str, request: Request) -> Any:
        page = jobs.list(project, location, request.query_params)
        if "customJobs" in page:
            page["customJobs"] = [_job(request, job) for job in page["customJobs"]]
        return page

    @app.get(_JOBS + "/{job_id}")
    def get(project: str, location: str, job_id: str, request: Request) -> Any:
        return _job(request, jobs.get(project, location, job_id))

    @app.post(_JOBS + "/{job_id}:cancel")
    def cancel(project: str, location: str, job_id: str) -> Any:
        return jobs.cancel(project, location, job_id)

    @app.delete(_JOBS + "/{job_id}")
    def delete(project: str, location: str, job_id: str) -> Any:
        return jobs.delete(project, location, job_id)

    @app.get("/v1/projects/{project}/locations/{location}" + _OPERATION)
    @app.get(_JOBS + "/{job_id}" + _OPERATION)
    def operation(operation_id: str) -> Any:
        return jobs.operation(operation_id)


def add_other_google_routes(app: FastAPI, logs: Logs) -> None:
    """Add Cloud Logging's entries.list."""

    @app.post("/v2/entries:list")
    async def entries(request: Request) -> Any:
        body = await _body(request)
        return await run_in_threadpool(logs.entries, body)


def add_fault_routes(app: FastAPI, faults: Faults, strikes: Strikes) -> None:
    """Add faults, those that stand and those that strike at once."""

    @app.post("/faults")
    async def add_fault(request: Request) -> Any:
        fault = parse_fault(await _body(request))
        if isinstance(fault, SpotLoss | KillReplica):
            return await run_in_threadpool(strikes.strike, fault)
        return {"id": faults.add(fault)}

    @app.get("/faults")
    def standing() -> Any:
        return {"faults": faults.standing()}

    @app.delete("/faults")
    def clear() -> Any:
        return {"removed": faults.remove()}

    @app.delete("/faults/{fault_id}")
    def remove(fault_id: str) -> Any:
        if not faults.remove(fault_id):
            raise ApiError(404, f"There is no fault {fault_id}.")
        return {"removed": 1}


def add_hold_routes(app: FastAPI, holds: Holds) -> None:
    """Add the calls that are held; all in the event loop, as the gate that holds them."""

    @app.get("/holds")
    async def held() -> Any:
        return holds.held()

    @app.delete("/holds")
    async def release_all() -> Any:
        return {"released": holds.release()}

    @app.delete("/holds/{fault_id}")
    async def release(fault_id: str) -> Any:
        return {"released": holds.release(fault_id)}


def add_judge_routes(app: FastAPI, store: Store, journal: Journal, quotas: Quotas) -> None:
    """Add what tests look at: health, the journal and the use of quotas."""

    @app.get("/healthz")
    def health() -> Any:
        with store.lock:
            return {"status": "ok", "live_jobs": len(store.live())}

    @app.get("/journal")
    def entries(event: str | None = None, job: str | None = None, after: int = 0) -> Any:
        return {"entries": journal.entries(event=event, job=job, after=after)}

    @app.get("/quotas")
    def used() -> Any:
        with store.lock:
            held = usage(store.live())
        keys = ("region", "accelerator", "model")
        rows = [(dict(zip(keys, key, strict=True)), quotas.limit(*key), count) for key, count in held.items()]
        return {"usage": [{**where, "limit": limit, "used": count} for where, limit, count in rows]}


def add_error_handlers(app: FastAPI) -> None:
    """Let every error have Google's body."""

    @app.exception_handler(ApiError)
    def api_error(request: Request, error: ApiError) -> JSONResponse:
        return JSONResponse(error.body(), error.status)

    @app.exception_handler(HTTPException)
    def no_route(request: Request, error: HTTPException) -> JSONResponse:
        text = f"{request.method} {request.url.path}: {error.detail}"
        return JSONResponse(ApiError(error.status_code, text).body(), error.status_code)


def _job(request: Request, job: dict[str, Any]) -> Any:
    # Google's client asks for `$alt=json;enum-encoding=int`.
    numbers = "enum-encoding=int" in request.query_params.get("$alt", "")
    return enums_as_numbers("CustomJob", job) if numbers else job


async def _body(request: Request) -> Any:
    try:
        return json.loads(await request.body() or b"{}")
    except ValueError as error:
        raise ApiError(400, f"Invalid JSON payload received. {error}") from None
