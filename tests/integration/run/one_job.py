"""One job key on the stand-ins, from its begin to the error that its task raises."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from trainops.gcp.vertex import region_of
from trainops.hooks.task import failure
from trainops.policy.record import Record, TaskTry
from trainops.settings import Settings
from trainops.steps.run import Run
from trainops.steps.run_verdict import error_of
from trainops.steps.services import Services
from trainops.steps.start import JobRequest, begin

SLOW = "import time; time.sleep(60)"
EXIT = "import sys; print('the last thing it said', flush=True); sys.exit({})"


class OneJob:
    """One job key of an environment, and how a test acts on it."""

    def __init__(self, settings: Settings, faults: Callable[..., None]) -> None:
        self.services = Services(settings)
        self.settings = settings
        self.faults = faults
        self.run = Run(self.services, f"{settings.work}/runs/exp/r/submit.json", actor="test", say=lambda _: None)

    def begin(
        self, code: str = "pass", number: int = 1, gpus: int = 0, changes: dict[str, Any] | None = None, **asks: Any
    ) -> None:
        """Begin, or resume in a try of that number.

        :param gpus: T4s of its one machine.
        :param changes: fields of its TrainingInput.
        :param asks: fields of the `JobRequest`.
        """
        config: dict[str, Any] = {
            "imageUri": "example/image", "containerCommand": ["python", "-c"], "containerArgs": [code],
        }  # fmt: skip
        if gpus:
            config["acceleratorConfig"] = {"type": "NVIDIA_TESLA_T4", "count": gpus}
        body: dict[str, Any] = {
            "scaleTier": "CUSTOM", "masterType": "n1-standard-8", "region": "us-central1", "masterConfig": config,
        }  # fmt: skip
        request = JobRequest(
            job_key="r-submit", run_key="r", experiment="exp", task="submit", display_name="r",
            training_input=body | (changes or {}), **asks,
        )  # fmt: skip
        tried = TaskTry(dag_id="d", run_id="r", task_id="submit", try_number=number, max_tries=2)
        begin(self.services.storage, self.settings, self.run.store.uri, request, tried, actor="submit")

    def until(self, arrived: Callable[[], bool], seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while True:
            self.run.advance()
            if arrived():
                return
            assert time.monotonic() < deadline, self.record
            time.sleep(0.1)

    def until_attempt_ends(self) -> None:
        self.until(lambda: bool(self.record.attempts) and self.record.attempts[0].verdict is not None)

    def until_running(self) -> None:
        self.until(lambda: self.run.observed is not None and self.run.observed.state == "JOB_STATE_RUNNING")

    def runs_in(self, region: str) -> bool:
        """True when its job runs there, as last seen."""
        seen = self.run.observed
        return seen is not None and seen.state == "JOB_STATE_RUNNING" and region_of(seen.name) == region

    def another_holds(self, gpus: int) -> None:
        """Another job key has a reservation of GPUs in the pool of the first choice."""
        key, uri = "other-submit", f"{self.settings.work}/runs/exp/other/submit.json"
        asks = JobRequest(
            job_key=key, run_key="other", experiment="exp", task="submit", display_name="other",
            training_input={
                "scaleTier": "CUSTOM", "masterType": "n1-standard-8", "region": "us-central1",
                "masterConfig": {
                    "imageUri": "example/image", "acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": gpus},
                },
            },
        )  # fmt: skip
        tried = TaskTry(dag_id="d", run_id="other", task_id="submit")
        record, _ = begin(self.services.storage, self.settings, uri, asks, tried, actor="submit")
        self.services.queue.enqueue(record, uri)
        assert self.services.queue.lease(record, uri).state == "reserved"

    @property
    def record(self) -> Record:
        return self.run.store.load()

    @property
    def raised(self) -> Exception:
        """What the task raises."""
        record = self.record
        name = record.attempt.job_name if record.attempt else None
        lines = [] if name is None else self._last_lines(name)
        error = error_of(record, lines)
        assert error is not None
        return failure(record, error)

    def _last_lines(self, name: str) -> list[str]:
        return [line.text for line in self.services.logs.entries([name.rpartition("/")[2]])][-20:]
