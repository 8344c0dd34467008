"""Whose job a killed trigger may end: Airflow kills it at a kill, at a clear, and when a stalled triggerer is back."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainops.policy.record import TaskTry, Verdict
from trainops.settings import Settings
from trainops.steps.run import Run
from trainops.steps.services import Services
from trainops.steps.start import JobRequest, begin
from trainops.triggers.run import RunTrigger

GOES_ON = [
    None,
    "none",
    "scheduled",
    "queued",
    "running",
    "deferred",
    "restarting",
    "up_for_retry",
    "up_for_reschedule",
]
"""States of a task that was resumed, taken over by another triggerer, or cleared: its next try has the job."""


class Killed(RunTrigger):
    """The trigger, told the state that Airflow has the task in."""

    state: str | None = None

    def _task_state(self) -> str | None:
        return self.state


class Followed:
    """A running job that a trigger follows."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.services = Services(settings)
        self.run = Run(self.services, f"{settings.work}/runs/exp/r/submit.json", actor="test", say=lambda _: None)
        self.begin(TaskTry(dag_id="d", run_id="r", task_id="submit", max_tries=1))

    def begin(self, tried: TaskTry) -> None:
        config = {
            "imageUri": "example/image", "containerCommand": ["python", "-c"],
            "containerArgs": ["import time; time.sleep(120)"],
        }  # fmt: skip
        body = {"scaleTier": "CUSTOM", "masterType": "n1-standard-8", "region": "us-central1", "masterConfig": config}
        request = JobRequest(
            job_key="r-submit", run_key="r", experiment="exp", task="submit", display_name="r", training_input=body
        )
        begin(self.services.storage, self.settings, self.run.store.uri, request, tried, actor="submit")
        self.run.advance()

    def kill(self, state: str | None, generation: int = 1) -> None:
        """Let the trigger that followed this generation be killed, with the task in a state."""
        task = {"dag_id": "d", "run_id": "r", "task_id": "wait", "map_index": -1}
        trigger = Killed(record_uri=self.run.store.uri, task=task, until="ended", generation=generation)
        trigger.state = state
        asyncio.run(trigger.on_kill())

    def hand_over(self) -> None:
        """As a trigger that has fired leaves the record."""
        self.run.store.change(lambda record: record and record.model_copy(update={"hand_over": "d.wait"}))

    def goes_on(self) -> bool:
        record = self.run.store.load()
        return record.cancel is None and record.verdict is None

    def ends(self) -> Verdict | None:
        deadline = time.monotonic() + 120
        while self.run.store.load().verdict is None and time.monotonic() < deadline:
            self.run.advance()
            time.sleep(0.1)
        return self.run.store.load().verdict


@pytest.fixture
def followed(vertex_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Followed:
    monkeypatch.setenv("TRAINOPS_CONFIGS", str(tmp_path))
    monkeypatch.setenv("TRAINOPS_ENVIRONMENT", "test")
    pool = "{accelerator: NVIDIA_TESLA_T4, region: us-central1, provisioning: standard, quota: 2}"
    (tmp_path / "gpu_pools.yaml").write_text(f"pools: [{pool}]\n")
    (tmp_path / "environments").mkdir()
    values: dict[str, Any] = vertex_settings.model_dump(by_alias=True, mode="json", exclude_none=True)
    del values["name"]
    (tmp_path / "environments" / "test.yaml").write_text(yaml.safe_dump(values))
    return Followed(vertex_settings)


@pytest.mark.parametrize("state", ["failed", "skipped", "upstream_failed", "removed", "success"])
def test_a_task_that_a_person_ended_while_it_was_deferred_ends_its_job(followed: Followed, state: str) -> None:
    followed.kill(state)
    assert followed.ends() is Verdict.CANCELLED
    assert f"was marked {state} while its job ran" in followed.run.store.load().message


def test_a_task_that_somebody_goes_on_with_keeps_its_job(followed: Followed) -> None:
    for state in GOES_ON:
        followed.kill(state)
        assert followed.goes_on(), state
    followed.kill("failed")
    assert followed.ends() is Verdict.CANCELLED


def test_a_triggerer_that_stalled_and_is_back_after_another_one_has_fired_ends_nothing(followed: Followed) -> None:
    followed.hand_over()
    followed.kill("success")
    assert followed.goes_on()
    followed.kill("failed")
    assert followed.ends() is Verdict.CANCELLED


def test_the_trigger_of_a_cleared_generation_does_not_touch_the_next_one(followed: Followed) -> None:
    followed.begin(TaskTry(dag_id="d", run_id="r", task_id="submit", max_tries=3, clear_number=1))
    assert followed.run.store.load().generation == 2
    followed.kill("failed", generation=1)
    assert followed.goes_on()
    followed.kill("failed", generation=2)
    assert followed.ends() is Verdict.CANCELLED
