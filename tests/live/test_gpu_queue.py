"""Twenty runs of all sizes and classes share eight GPUs; the Vertex stand-in's journal and the metrics judge."""

from __future__ import annotations

import random
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from tests.live.queue_mix import CLASSES, QUOTA, URGENT, Asked, Mix, Span, gpus_of

from trainops.policy.record import Verdict

if TYPE_CHECKING:
    from tests.live.cloud import Cloud

pytestmark = [pytest.mark.live, pytest.mark.full, pytest.mark.timeout(1800)]

STEPS = 200
LONG = 20
"""Seconds of waiting after which a run was told why."""


def twenty() -> list[Asked]:
    """Runs of 1 to 8 GPUs and of all classes, the same at every call."""
    draw = random.Random(6)
    sizes = [8, 8, 4, 4, 2, 2, 2, 2, *[1] * 10]
    draw.shuffle(sizes)
    names = list(CLASSES)
    mixed = [Asked(f"run{n:02}-{names[n % 3]}", gpus, CLASSES[names[n % 3]]) for n, gpus in enumerate(sizes)]
    return [*mixed, Asked("run18-urgent", 8, URGENT), Asked("run19-urgent", 8, URGENT)]


def most_at_once(spans: list[Span]) -> int:
    """The largest number of GPUs that jobs held at one moment."""
    changes = sorted([(one.began, one.gpus) for one in spans] + [(one.ended, -one.gpus) for one in spans])
    now = most = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


@dataclass(frozen=True)
class Shown:
    """What came of the mix."""

    mix: Mix
    alone: Asked
    runs: list[Asked]
    spans: list[Span]


@pytest.fixture(scope="module")
def shown(cloud: Cloud) -> Shown:
    """One run alone, then twenty; two urgent ones come later, and components are killed in between."""
    mix, runs = Mix(cloud), twenty()
    mix.prepare("for_the_mix")
    alone = Asked("alone", 1, CLASSES["normal"])
    mix.start(alone, STEPS)
    mix.finish(alone)
    for asked in runs[:18]:
        mix.start(asked, STEPS)
    _until_training(mix)
    cloud.kill("triggerer")
    mix.start(runs[18], STEPS)
    mix.finish(runs[18])
    cloud.kill("scheduler")
    _until_training(mix)
    mix.start(runs[19], STEPS)
    mix.finish(*runs)
    return Shown(mix, alone, runs, mix.spans())


def _until_training(mix: Mix) -> None:
    """Wait until the GPUs are in use by jobs that train."""

    def training() -> bool:
        jobs = mix.cloud.services.vertex("us-central1").list('state="JOB_STATE_RUNNING"')
        return sum(gpus_of(job) for job in jobs) >= QUOTA - 1

    mix.cloud.until(training, 300, lambda: "the GPUs were never in use")
    time.sleep(10)  # so that they are in the middle of it


def preempted(shown: Shown) -> list[Asked]:
    """The runs that made room."""
    records = {asked: shown.mix.record(asked) for asked in shown.runs}
    return [asked for asked, record in records.items() if any(a.verdict is Verdict.PREEMPTED for a in record.attempts)]


def test_all_end_well_in_one_try_each(shown: Shown) -> None:
    tries = {asked.name: shown.mix.cloud.tries("queue_mix", asked.name)["train"] for asked in shown.runs}
    assert set(tries.values()) == {1}, tries
    assert all(shown.mix.record(asked).verdict is Verdict.SUCCEEDED for asked in shown.runs)


def test_never_more_gpus_are_in_use_than_there_are(shown: Shown) -> None:
    assert most_at_once(shown.spans) <= QUOTA


def test_while_an_urgent_run_waits_nobody_else_begins(shown: Shown) -> None:
    urgent = [asked.name for asked in shown.runs if asked.priority == URGENT]
    for name in urgent:
        asked_at = next(line.at for line in shown.mix.record(next(a for a in shown.runs if a.name == name)).story)
        mine = min(span.began for span in shown.spans if span.run == name)
        # What was admitted before it asked is submitted within a moment.
        late = [s.run for s in shown.spans if asked_at.timestamp() + 15 < s.began.timestamp() < mine.timestamp()]
        assert not [run for run in late if run not in urgent], (name, late)


def test_a_run_that_made_room_has_the_losses_of_one_that_was_never_disturbed(shown: Shown) -> None:
    expected = shown.mix.losses(shown.alone)
    assert [step for step, _ in expected] == list(range(1, STEPS + 1))
    victims = preempted(shown)
    assert victims
    for asked in victims:
        assert shown.mix.losses(asked) == expected, asked.name


def test_a_run_that_made_room_tells_for_whom_and_resumes_from_its_step(shown: Shown) -> None:
    urgent = [asked.name for asked in shown.runs if asked.priority == URGENT]
    victims = preempted(shown)
    told = [a.leave.why for asked in victims for a in shown.mix.record(asked).attempts if a.leave is not None]
    assert all(any(name in why for name in [run.name for run in shown.runs]) for why in told), told
    assert any(name in why for why in told for name in urgent), told


def test_every_run_that_waited_was_told_its_rank_and_what_it_waits_for(shown: Shown) -> None:
    began = {span.run: span.began for span in reversed(shown.spans)}
    waited = []
    for asked in shown.runs:
        opened = shown.mix.record(asked).opened_at
        if (began[asked.name] - opened).total_seconds() > LONG:
            waited.append(asked)
            log = shown.mix.cloud.log("queue_mix", asked.name, "train")
            assert re.search(r"rank \d+ of \d+: ", log), (asked.name, log)
    assert len(waited) > len(shown.runs) // 2
