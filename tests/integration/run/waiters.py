"""Runs that wait in one triggerer, on a real GCS server and the Vertex stand-in."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from trainops.policy.record import Record, TaskTry
from trainops.settings import Settings
from trainops.steps.record_store import RecordStore
from trainops.steps.run import Run
from trainops.steps.services import Services
from trainops.steps.start import JobRequest, begin
from trainops.triggers.run import RunTrigger

POLL_SECONDS = 1.0
TALKING = "import time; [(print('line', n, flush=True), time.sleep(0.4)) for n in range(25)]"

POOLS = "pools: [{accelerator: NVIDIA_TESLA_T4, region: us-central1, quota: 2}]\n"


class Waiters:
    """Runs of one environment, each followed by a trigger, as a triggerer does."""

    def __init__(self, settings: Settings, configs: Path, monkeypatch: pytest.MonkeyPatch, pools: str = POOLS) -> None:
        monkeypatch.setenv("TRAINOPS_CONFIGS", str(configs))
        monkeypatch.setenv("TRAINOPS_ENVIRONMENT", "test")
        (configs / "gpu_pools.yaml").write_text(pools)
        (configs / "environments").mkdir()
        values = settings.model_dump(by_alias=True, mode="json", exclude_none=True, exclude={"name"})
        (configs / "environments" / "test.yaml").write_text(yaml.safe_dump(values))
        self.settings = settings
        self.services = Services(settings)

    def submit(self, name: str, code: str = TALKING, *, gpus: int = 0, **request_fields: Any) -> str:
        """Begin a run, submit its job if it has its GPUs, and return its record's URI."""
        config: dict[str, Any] = {
            "imageUri": "example/image", "containerCommand": ["python", "-c"], "containerArgs": [code],
        }  # fmt: skip
        if gpus:
            config["acceleratorConfig"] = {"type": "NVIDIA_TESLA_T4", "count": gpus}
        body = {"scaleTier": "CUSTOM", "masterType": "n1-standard-8", "region": "us-central1", "masterConfig": config}
        request = JobRequest(
            job_key=f"{name}-submit", run_key=name, experiment="exp", task="submit", display_name=name,
            training_input=body, **request_fields,
        )  # fmt: skip
        uri = f"{self.settings.work}/runs/exp/{name}/submit.json"
        tried = TaskTry(dag_id="d", run_id=name, task_id="submit", try_number=1)
        begin(self.services.storage, self.settings, uri, request, tried, actor="submit")
        Run(self.services, uri, actor="submit", say=lambda _: None).advance()
        return uri

    def trigger(self, uri: str) -> RunTrigger:
        task = {"dag_id": "d", "run_id": uri.split("/")[-2], "task_id": "wait", "map_index": -1}
        return RunTrigger(record_uri=uri, task=task, until="ended", generation=1, poll_seconds=POLL_SECONDS)

    def run(self, name: str) -> Record:
        """The record of a run."""
        return RecordStore(self.services.storage, f"{self.settings.work}/runs/exp/{name}/submit.json").load()

    def journal(self, event: str = "call") -> list[dict[str, Any]]:
        """What the stand-in was asked so far, or noted of another kind."""
        url = f"{self.settings.vertex_endpoint('us-central1')}/journal?event={event}"
        entries: list[dict[str, Any]] = httpx.get(url).json()["entries"]
        return entries

    def calls(self) -> Counter[str]:
        """How often each method of the stand-in was called so far."""
        return Counter(entry["method"] for entry in self.journal())


async def event_of(trigger: RunTrigger) -> dict[str, Any]:
    events: list[Any] = [event async for event in trigger.run()]
    assert len(events) == 1
    payload: dict[str, Any] = events[0].payload
    return payload
