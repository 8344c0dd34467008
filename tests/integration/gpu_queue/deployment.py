"""One deployment as a process: `python deployment.py SETTINGS NAME COUNT`.

Some waiters share its queue, as runs share that of a triggerer. Each takes a job key after the other through the queue:
it asks, waits, has GPUs for a moment, and leaves. What was held when is printed as JSON, by the machine's own clock.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from trainops.config.gpu_pools import GpuPool, GpuPools
from trainops.errors import TransientError
from trainops.gcp.storage import Storage
from trainops.policy.record import Record, TaskTry
from trainops.settings import Settings
from trainops.steps.gpu_queue import GpuQueue
from trainops.steps.record_store import RecordStore

QUOTA = 8
POOLS = GpuPools(pools=[GpuPool(accelerator="NVIDIA_TESLA_T4", region="us-central1", quota=QUOTA)])
WAITERS = 6
HELD_SECONDS = 0.05
PATIENCE_SECONDS = 200.0

Answer = TypeVar("Answer")


class Deployment:
    """Takes job keys through one queue."""

    def __init__(self, settings: Settings, name: str, count: int) -> None:
        self.settings = settings
        self.storage = Storage.connect(settings)
        self.queue = GpuQueue(self.storage, settings.work, POOLS)
        self.name = name
        self.left = list(range(count))
        self.held: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def run(self) -> list[dict[str, Any]]:
        """Take all through the queue, and return what each held."""
        with ThreadPoolExecutor(WAITERS) as waiters:
            for ended in [waiters.submit(self._take_on) for _ in range(WAITERS)]:
                ended.result()
        return self.held

    def _take_on(self) -> None:
        while True:
            with self._lock:
                if not self.left:
                    return
                number = self.left.pop()
            self._take(f"exp-{self.name}{number:03}-submit", random.Random(number).choice([1, 1, 2, 4, 8]))

    def _take(self, key: str, gpus: int) -> None:
        uri = f"{self.settings.work}/runs/exp/{key}.json"
        record = self._record(key, gpus)
        persist(lambda: RecordStore(self.storage, uri).change(lambda _none: record))
        self._wait(record, uri)
        persist(lambda: self.queue.bind(key, f"projects/1/locations/us-central1/customJobs/{key}"))
        since = time.monotonic()
        time.sleep(HELD_SECONDS)
        self.held.append({"key": key, "gpus": gpus, "since": since, "until": time.monotonic()})
        persist(lambda: self.queue.release(key))

    def _wait(self, record: Record, uri: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            state = persist(lambda: self.queue.lease(record, uri)).state
            if state == "reserved":
                return
            if state == "none":  # as the lifecycle has it: who is not in the queue asks for a place
                persist(lambda: self.queue.enqueue(record, uri))
            else:
                time.sleep(0.1)
        ledger = self.queue.snapshot()[0].model_dump_json(indent=1)
        raise TimeoutError(f"{record.job_key} was not admitted within {PATIENCE_SECONDS:.0f} s; the ledger: {ledger}")

    def _record(self, key: str, gpus: int) -> Record:
        return Record(
            job_key=key, run_key=key.removesuffix("-submit"), experiment="exp", priority=50, region="us-central1",
            owner=TaskTry(dag_id="d", run_id="r", task_id="submit"), opened_at=datetime.now(UTC), spec={},
            spec_hash="", folder=f"{self.settings.work}/runs/exp/{key}/g1", accelerators={"NVIDIA_TESLA_T4": gpus},
        )  # fmt: skip


def persist(act: Callable[[], Answer]) -> Answer:
    """Do it again after an error that passes, as the next look of a trigger does."""
    while True:
        try:
            return act()
        except TransientError:
            time.sleep(0.05)


if __name__ == "__main__":
    given = Settings.model_validate_json(Path(sys.argv[1]).read_text())
    print(json.dumps(Deployment(given, sys.argv[2], int(sys.argv[3])).run()))
