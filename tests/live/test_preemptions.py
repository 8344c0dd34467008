"""How long the GPUs of a job that made room stand empty: from its marker to the job of whoever they were freed for.

The figures are printed and not asserted: `pytest -s -m full tests/live/test_preemptions.py`.
"""

from __future__ import annotations

import statistics
import time
from datetime import datetime
from typing import TYPE_CHECKING

import pytest
from tests.live.queue_mix import CLASSES, URGENT, Asked, Mix

from trainops import naming
from trainops.policy.record import Verdict
from trainops.steps.record_store import RecordStore

if TYPE_CHECKING:
    from tests.live.cloud import Cloud

pytestmark = [pytest.mark.live, pytest.mark.full, pytest.mark.timeout(1800)]

TIMES = 20
VICTIM = Asked("victim", 8, CLASSES["low"])
ENOUGH_STEPS = 20_000


@pytest.fixture(scope="module")
def mix(cloud: Cloud) -> Mix:
    """One run trains on all GPUs; again and again an urgent one takes them for a moment."""
    mix = Mix(cloud)
    mix.prepare("for_preemptions")
    mix.start(VICTIM, ENOUGH_STEPS)
    for number in range(TIMES):
        trains(mix, number + 1)
        urgent = Asked(f"urgent{number:02}", 8, URGENT)
        mix.start(urgent, 2)
        mix.finish(urgent)
    trains(mix, TIMES + 1)
    mix.airflow.mark("queue_mix", VICTIM.name, "train", "failed")
    mix.cloud.until(lambda: mix.record(VICTIM).verdict is not None, 120, lambda: "the victim was not ended")
    return mix


def trains(mix: Mix, attempt: int) -> None:
    """Wait until that attempt of the victim has made a few steps."""

    def steps() -> int:
        found = RecordStore(mix.cloud.services.storage, mix.record_uri(VICTIM)).read()
        if found is None:  # its task has not begun
            return 0
        record = found[0]
        if len(record.attempts) < attempt or record.attempts[-1].job_name is None:
            return 0
        begun = record.attempts[-1].bound_at
        assert begun is not None
        lines = mix.cloud.services.storage.info(f"{record.folder}/metrics.jsonl")
        return 1 if lines is not None and lines.updated > begun else 0

    mix.cloud.until(lambda: steps() > 0, 180, lambda: f"attempt {attempt} of the victim did not train")
    time.sleep(2)


def seconds_empty(mix: Mix, number: int) -> float:
    """From the marker of the victim's attempt to the creation of the urgent job that it made room for."""
    victim, urgent = mix.record(VICTIM), mix.record(Asked(f"urgent{number:02}", 8, URGENT))
    marker = mix.cloud.services.storage.info(f"{naming.control_folder(victim.folder, number + 1)}/preempted")
    assert marker is not None
    (attempt,) = urgent.attempts
    assert attempt.job_name is not None
    job = mix.cloud.services.vertex("us-central1").get(attempt.job_name)
    return (datetime.fromisoformat(job["createTime"]) - marker.updated).total_seconds()


def test_every_urgent_run_came_after_a_saved_checkpoint_and_none_was_paid_for_twice(mix: Mix) -> None:
    attempts = mix.record(VICTIM).attempts
    assert [item.verdict for item in attempts[:TIMES]] == [Verdict.PREEMPTED] * TIMES
    empty = [seconds_empty(mix, number) for number in range(TIMES)]
    worst = sorted(empty)[int(0.95 * TIMES) - 1]
    print(
        f"\n{TIMES} preemptions, seconds from the victim's marker to the job it made room for: median "
        f"{statistics.median(empty):.1f}, 95 % within {worst:.1f}, longest {max(empty):.1f}"
    )
    assert min(empty) > 0


def test_the_victim_lost_and_repeated_no_step(mix: Mix) -> None:
    steps = [step for step, _ in mix.losses(VICTIM)]
    assert steps == list(range(1, len(steps) + 1))
