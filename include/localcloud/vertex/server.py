"""Puts the parts together and serves them on the loopback."""

from __future__ import annotations

import fcntl
import signal
from typing import IO

import uvicorn
from fastapi import FastAPI

from localcloud.holds import Holds
from localcloud.vertex import api
from localcloud.vertex.custom_jobs import CustomJobs
from localcloud.vertex.engine import Engine
from localcloud.vertex.faults import Faults
from localcloud.vertex.gate import Gate
from localcloud.vertex.journal import Journal
from localcloud.vertex.lifecycle import Lifecycle
from localcloud.vertex.logs import Logs
from localcloud.vertex.options import Options
from localcloud.vertex.quota import Quotas
from localcloud.vertex.replicas import Replicas
from localcloud.vertex.store import Store
from localcloud.vertex.strikes import Strikes
from localcloud.vertex.tokens import add_token_routes


def serve(options: Options, port: int) -> None:
    """Serve on 127.0.0.1 until SIGTERM or SIGINT, then end all replicas.

    :raises SystemExit: another server uses the state folder.
    """
    options.state.mkdir(parents=True, exist_ok=True)
    with _lock(options):
        gate, engine = build(options)
        # uvicorn raises the signal again when it has shut down; by then it must not end the process.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        engine.start()
        config = uvicorn.Config(
            gate,
            host="127.0.0.1",
            port=port,
            http="h11",
            lifespan="off",
            log_level="warning",
            timeout_graceful_shutdown=1,
        )
        uvicorn.Server(config).run()
        engine.shut_down(options.grace + 1)


def build(options: Options) -> tuple[Gate, Engine]:
    """Return the application and the engine that drives its jobs, not started."""
    store, journal = Store(options.state), Journal(options.state)
    faults, holds = Faults(), Holds()
    logs, quotas = Logs(store, faults), Quotas(options.quota_file)
    replicas = Replicas(options, store, journal)
    lifecycle = Lifecycle(store, journal, logs, replicas, quotas, faults)
    engine = Engine(store, lifecycle, replicas)
    jobs = CustomJobs(store, lifecycle, engine, faults, options.project_number)
    app = FastAPI(title="Vertex AI on the loopback", docs_url=None, redoc_url=None, openapi_url=None)
    api.add_vertex_routes(app, jobs)
    api.add_other_google_routes(app, logs)
    add_token_routes(app, journal, faults)
    api.add_fault_routes(app, faults, Strikes(store, lifecycle, replicas))
    api.add_hold_routes(app, holds)
    api.add_judge_routes(app, store, journal, quotas)
    api.add_error_handlers(app)
    return Gate(app, journal, faults, holds), engine


def _lock(options: Options) -> IO[str]:
    file = (options.state / "lock").open("w", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise SystemExit(f"{options.state} is in use by another stand-in for Vertex AI") from None
    return file
