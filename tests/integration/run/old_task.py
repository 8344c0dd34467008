"""A task of an old DAG, tried as Airflow tries it: in this process, deferred, or in a process of its own.

As a program it is one try, `python old_task.py '{"arguments": {...}, "instance": {...}}'`, for tests that kill it.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import httpx
from airflow.sdk.exceptions import TaskDeferred

from trainops.providers.google.cloud.operators.mlengine import MLEngineStartTrainingJobOperator
from trainops.settings import Settings
from trainops.steps.services import Services
from trainops.triggers.run import RunTrigger

Json = dict[str, Any]
REGION = "us-central1"


def arguments(code: str = "print('hello')", *, gpus: int = 0, **changes: Any) -> Json:
    """Arguments of an operator whose job runs `code`, and waits for it on the worker."""
    config: Json = {"imageUri": "example/image", "containerCommand": ["python", "-u", "-c"], "containerArgs": [code]}
    if gpus:
        config["acceleratorConfig"] = {"type": "NVIDIA_TESLA_T4", "count": gpus}
    given: Json = {
        "task_id": "train", "job_id": "census", "scale_tier": "CUSTOM", "master_type": "n1-standard-8",
        "master_config": config, "region": REGION, "deferrable": False, "poll_interval": 0.2,
    }  # fmt: skip
    return given | changes


class Try:
    """What the operator asks of a task instance: who it is, which try, and where XComs go."""

    def __init__(self, number: int = 1, **changes: Any) -> None:
        self.dag_id, self.run_id, self.task_id, self.map_index = "old_dag", "r", "train", -1
        self.id, self.try_number, self.max_tries = f"try-{number}", number, 3
        self.start_date = datetime.now(UTC)
        vars(self).update(changes)
        self.pushed: Json = {}

    def xcom_push(self, key: str, value: Any) -> None:
        """Keep it."""
        self.pushed[key] = value

    def context(self) -> Any:
        """The context of a run that was triggered without a date, as Airflow 3 has it."""
        run = SimpleNamespace(logical_date=None, run_after=datetime(2026, 1, 1, tzinfo=UTC))
        return {"ti": self, "dag_run": run}


def execute(operator: MLEngineStartTrainingJobOperator, current: Try) -> Any:
    """One try to its end: where it defers, a trigger is built from what is stored of it, as a triggerer does."""
    try:
        return operator.execute(current.context())
    except TaskDeferred as deferral:
        event = event_of(stored(deferral))
    return operator.execute_complete(current.context(), event)


def deferred(operator: MLEngineStartTrainingJobOperator, current: Try) -> TaskDeferred:
    """The deferral of a try that must come to one."""
    try:
        result = operator.execute(current.context())
    except TaskDeferred as deferral:
        return deferral
    raise AssertionError(f"it did not defer, and answered {result}")


def stored(deferral: TaskDeferred) -> RunTrigger:
    """The trigger, through the text that it is kept as."""
    _, kept = deferral.trigger.serialize()
    return RunTrigger(**json.loads(json.dumps(kept)))


def event_of(trigger: RunTrigger) -> Json:
    """What a trigger fires."""

    async def run() -> list[Any]:
        return [event async for event in trigger.run()]

    (event,) = asyncio.run(run())
    payload: Json = event.payload
    return payload


class Seen:
    """What the stand-in saw of one project."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.vertex = Services(settings).vertex(REGION)
        self.url = settings.vertex_endpoint(REGION)

    def jobs(self) -> list[Json]:
        """All jobs, the oldest first."""
        return sorted(self.vertex.list(), key=lambda job: str(job["createTime"]))

    def states(self) -> list[str]:
        """Their states."""
        return [str(job["state"]).removeprefix("JOB_STATE_") for job in self.jobs()]

    def calls(self, method: str) -> int:
        """How often a method was called for the project or one of its jobs, also when the answer was lost."""
        entries = httpx.get(f"{self.url}/journal", params={"event": "call"}).raise_for_status().json()["entries"]
        ours = {self.settings.project, *(str(job["name"]).rpartition("/")[2] for job in self.jobs())}
        return sum(entry["method"] == method and any(name in entry["path"] for name in ours) for entry in entries)


def start(given: Json, instance: Json) -> subprocess.Popen[str]:
    """One try in a process of its own, which a test may kill."""
    told = json.dumps({"arguments": given, "instance": instance})
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "ignore", __file__, told]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    print(execute(MLEngineStartTrainingJobOperator(**asked["arguments"]), Try(**asked["instance"])))
