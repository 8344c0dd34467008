"""One process that submits jobs with one operator, the first cold, and measures each: `submission.py ours|provider N`.

Time runs from before the operator is imported, for the first one, and from `execute()` for the others, which find all
modules loaded and connections made anew, as each task does. Prints JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from airflow.sdk.exceptions import TaskDeferred

Json = dict[str, Any]
COMMAND = ["python", "-c", "import time; time.sleep(60)"]


class Clock:
    """Wall and CPU seconds since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.monotonic(), time.process_time()
        self.accepted: tuple[float, float] = (0.0, 0.0)

    def read(self) -> tuple[float, float]:
        """Return both."""
        return time.monotonic() - self._wall, time.process_time() - self._cpu

    def noting(self, create: Callable[..., Any]) -> Callable[..., Any]:
        """The method that creates a job, which notes when it has returned."""

        def noted(*arguments: Any, **named: Any) -> Any:
            job = create(*arguments, **named)
            self.accepted = self.read()
            return job

        return noted


class Instance:
    """What operators ask of a task instance."""

    def __init__(self, run_id: str) -> None:
        self.dag_id, self.run_id, self.task_id, self.map_index = "bench", run_id, "train", -1
        self.id, self.try_number, self.max_tries = f"id-{run_id}", 1, 0

    def xcom_push(self, key: str, value: Any) -> None:
        """Take it; the Execution API is the same for all operators."""


def ours(clock: Clock) -> Any:
    """Trainops' operator, asked to wait for the job's end, and thus to defer."""
    from trainops.gcp.vertex import Vertex
    from trainops.operators.mlengine import MLEngineStartTrainingJobOperator

    Vertex.create = clock.noting(Vertex.create)  # type: ignore[method-assign]
    config = {"imageUri": "example/image", "containerCommand": COMMAND[:1], "containerArgs": COMMAND[1:]}
    return MLEngineStartTrainingJobOperator(
        task_id="train", scale_tier="CUSTOM", master_type="n1-standard-8", master_config=config, region="us-central1",
        wait=True, deferrable=True,
    )  # fmt: skip


def provider(clock: Clock) -> Any:
    """The Google provider's operator, its client pointed at the stand-in by its own REST transport."""
    from airflow.providers.google.cloud.hooks.vertex_ai.custom_job import CustomJobHook
    from airflow.providers.google.cloud.operators.vertex_ai.custom_job import CreateCustomJobOperator
    from google.auth import credentials
    from google.cloud.aiplatform_v1 import JobServiceClient
    from google.cloud.aiplatform_v1.services.job_service.transports.rest import JobServiceRestTransport

    host = os.environ["BENCH_VERTEX"].removeprefix("http://")
    anonymous: Any = credentials.AnonymousCredentials

    def client(_: CustomJobHook, region: str | None = None) -> Any:
        return JobServiceClient(
            transport=JobServiceRestTransport(host=host, url_scheme="http", credentials=anonymous())
        )

    hook: Any = CustomJobHook
    hook.get_job_service_client = client
    hook.create_custom_job = clock.noting(CustomJobHook.create_custom_job)
    container = {"image_uri": "example/image", "command": COMMAND[:1], "args": COMMAND[1:]}
    pool = {"machine_spec": {"machine_type": "n1-standard-8"}, "replica_count": 1, "container_spec": container}
    return CreateCustomJobOperator(
        task_id="train", region="us-central1", project_id="bench-llm", deferrable=True,
        custom_job={"display_name": "bench", "job_spec": {"worker_pool_specs": [pool]}},
    )  # fmt: skip


def submit(make: Callable[[Clock], Any], run_id: str) -> Json:
    """Make the operator and execute it until it defers."""
    clock = Clock()
    operator = make(clock)
    run = SimpleNamespace(logical_date=None, run_after=datetime(2026, 1, 1, tzinfo=UTC))
    try:
        operator.execute({"ti": Instance(run_id), "dag_run": run, "task": operator})
    except TaskDeferred:
        deferred = clock.read()
    else:
        sys.exit("it did not defer")
    return {"accepted": clock.accepted, "deferred": deferred}


if __name__ == "__main__":
    who = {"ours": ours, "provider": provider}[sys.argv[1]]
    print("\n" + json.dumps([submit(who, f"{os.getpid()}-{number}") for number in range(int(sys.argv[2]))]))
