"""One process that runs all triggers in one event loop, as Airflow's triggerer does, and measures itself.

`python -m benchmarks.triggerer ours|provider` reads a task from stdin and writes what it measured, both as JSON. Of a
triggerer it lacks what is the same for all triggers: the database, and the files that task logs go to.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from airflow.triggers.base import BaseTrigger
from benchmarks.local_services import call, storage_calls

Json = dict[str, Any]


class Loop:
    """The triggers, and when each fired."""

    def __init__(self, task: Json) -> None:
        self.task = task
        self.fired: dict[str, float] = {}
        self.failed: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def measure(self, trigger_of: Callable[[Json], BaseTrigger]) -> Json:
        """Start all triggers at once, let them settle, watch them wait, then let jobs end."""
        runs = self.task["runs"]
        self.tasks = [asyncio.create_task(self._event(run["job"], trigger_of(run))) for run in runs]
        before = time.process_time()
        await asyncio.sleep(self.task["settle_seconds"])
        settled, calls_before = time.process_time(), self._calls()
        await asyncio.sleep(self.task["seconds"])
        waited, calls_after = time.process_time(), self._calls()
        ends = self._end_some()
        while set(ends) - set(self.fired) and time.time() < max(ends.values()) + 60:
            await asyncio.sleep(0.5)
        ended = time.process_time()
        return {
            "settle_cpu": settled - before,
            "cpu": waited - settled,
            "ends_cpu": ended - waited,
            "calls": {name: count - calls_before.get(name, 0) for name, count in calls_after.items()},
            "delays": [self.fired[job] - moment for job, moment in ends.items() if job in self.fired],
            "missing": len(set(ends) - set(self.fired)),
            "wrong": [*self.failed, *(set(self.fired) - set(ends))],
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }

    async def _event(self, job: str, trigger: BaseTrigger) -> None:
        async for event in trigger.run():
            self.fired[job] = time.time()
            if event.payload["status"] not in {"done", "success"}:
                self.failed.append(str(event.payload))
            return

    def _calls(self) -> dict[str, int]:
        calls: dict[str, int] = call(f"{self.task['vertex']}/bench/calls")
        return {**calls, "storage": storage_calls(Path(self.task["storage_log"]))}

    def _end_some(self) -> dict[str, float]:
        """Let some jobs end one after another; answers when each does."""
        ending, start = self.task["runs"][: self.task["ends"]], time.time() + 1
        ends = {run["job"]: start + self.task["ends_over"] * i / len(ending) for i, run in enumerate(ending)}
        by_number = {job.rsplit("/", 1)[-1]: moment for job, moment in ends.items()}
        call(f"{self.task['vertex']}/bench/schedule", by_number)
        return ends


def ours(task: Json) -> Callable[[Json], BaseTrigger]:
    """The trigger of Trainops' operator and sensor."""
    from trainops.triggers.run import RunTrigger

    def trigger(run: Json) -> BaseTrigger:
        key = {"dag_id": "bench", "run_id": run["record"].split("/")[-2], "task_id": "train", "map_index": -1}
        return RunTrigger(record_uri=run["record"], task=key, until="ended", generation=1, poll_seconds=task["poll"])

    return trigger


def provider(task: Json) -> Callable[[Json], BaseTrigger]:
    """The trigger of the Google provider's CreateCustomJobOperator.

    Its hook knows only Google's own address, over gRPC. Here it gets the same client with the asynchronous REST
    transport; all its clients share one pool of connections, as channels of gRPC to one address do.
    """
    from airflow.providers.google.cloud.hooks.vertex_ai.custom_job import CustomJobAsyncHook
    from airflow.providers.google.cloud.triggers.vertex_ai import CustomJobTrigger
    from google.auth.aio.credentials import AnonymousCredentials
    from google.cloud.aiplatform_v1 import JobServiceAsyncClient
    from google.cloud.aiplatform_v1.services.job_service.transports.rest_asyncio import AsyncJobServiceRestTransport

    anonymous: Any = AnonymousCredentials
    transports: list[Any] = []

    async def client(self: Any, region: str | None = None) -> Any:
        await self.get_sync_hook()  # as the hook does
        if not transports:
            host = task["vertex"].removeprefix("http://")
            transports.append(AsyncJobServiceRestTransport(host=host, url_scheme="http", credentials=anonymous()))
        return JobServiceAsyncClient(transport=transports[0])

    CustomJobAsyncHook.get_job_service_client = client  # type: ignore[method-assign]

    def trigger(run: Json) -> BaseTrigger:
        _, project, _, region, _, number = run["job"].split("/")
        return CustomJobTrigger(project_id=project, location=region, custom_job_id=number, poll_interval=task["poll"])

    return trigger


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    triggers = {"ours": ours, "provider": provider}[sys.argv[1]](asked)
    loop = asyncio.new_event_loop()
    measured = loop.run_until_complete(Loop(asked).measure(triggers))
    Path(asked["result"]).write_text(json.dumps(measured))
    os._exit(0)  # those that still wait are not taken leave of
