"""Twenty runs of all sizes and classes share eight GPUs; the Vertex stand-in's journal and the metrics judge."""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from tests.chaos.airflow import Airflow
from tests.chaos.stand_ins import StandIns

from trainops.policy.record import Record, Verdict
from trainops.steps.record_store import RecordStore

if TYPE_CHECKING:
    from tests.live.cloud import Cloud

pytestmark = [pytest.mark.live, pytest.mark.full, pytest.mark.timeout(1800)]

QUOTA = 8
MACHINES = {1: "g2-standard-12", 2: "g2-standard-24", 4: "g2-standard-48", 8: "g2-standard-96"}
CLASSES = {"low": 25, "normal": 50, "high": 75}
URGENT = 100
STEPS = 200
FINAL = {"JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED"}


@dataclass(frozen=True)
class Asked:
    """A run, by what it asks for."""

    name: str
    gpus: int
    priority: int


@dataclass(frozen=True)
class Span:
    """A job in the journal, from its creation to its end."""

    run: str
    gpus: int
    began: datetime
    ended: datetime


def twenty() -> list[Asked]:
    """Runs of 1 to 8 GPUs and of all classes, the same at every call."""
    draw = random.Random(6)
    sizes = [8, 8, 4, 4, 2, 2, 2, 2, *[1] * 10]
    draw.shuffle(sizes)
    names = list(CLASSES)
    mixed = [Asked(f"run{n:02}-{names[n % 3]}", gpus, CLASSES[names[n % 3]]) for n, gpus in enumerate(sizes)]
    return [*mixed, Asked("run18-urgent", 8, URGENT), Asked("run19-urgent", 8, URGENT)]


class Mix:
    """The runs on a running Airflow."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.airflow = Airflow.of(cloud)
        self._plan: dict[str, Any] = {}
        self._conf: dict[str, Any] = {}

    def prepare(self) -> None:
        """Have a run of the whole chain make tokens and package; the runs of the mix train on them."""
        (self.cloud.home.dags / "train.py").touch()
        for dag in ("train_manual", "queue_mix"):
            self.cloud.wait_for_dag(dag)
            self.airflow.unpause(dag)
        run = self.cloud.trigger("train_manual", "for_the_mix", {"steps": 2, "data_date": "2026-11-28"})
        assert self.cloud.finish("train_manual", run) == "success"
        given = {
            task: self.cloud.api.return_value("train_manual", run, task)
            for task in ("stage_dataset", "package_trainer")
        }
        self._plan = self.cloud.plan("train_manual", run)
        self._conf = {"tokens": given["stage_dataset"]["tokens"], "package": given["package_trainer"]["uri"]}

    def start(self, asked: Asked) -> None:
        """Write the run's plan, and trigger it."""
        training = {**self._plan["trainer"], "steps": STEPS, "checkpoint_every": 50, "log_every": 1, "eval_every": 0}
        plan = self._plan | {"run_key": asked.name, "priority": asked.priority, "trainer": training}
        uri = f"{self.cloud.services.settings.work}/runs/mix/{asked.name}/plan.json"
        self.cloud.services.storage.write_json(uri, plan, generation=0)
        conf = self._conf | {"plan": uri, "gpus": str(asked.gpus), "machine": MACHINES[asked.gpus]}
        self.airflow.start("queue_mix", asked.name, conf)

    def finish(self, *asked: Asked) -> None:
        """Wait for the ends of runs, all of them good."""

        def left() -> list[str]:
            return [one.name for one in asked if not self.airflow.has_ended("queue_mix", one.name)]

        self.cloud.until(lambda: not left(), 1200, left)
        states = {one.name: self.airflow.run_state("queue_mix", one.name) for one in asked}
        assert set(states.values()) == {"success"}, states

    def record(self, asked: Asked) -> Record:
        uri = f"{self.cloud.services.settings.work}/runs/mix/{asked.name}/train.json"
        return RecordStore(self.cloud.services.storage, uri).load()

    def losses(self, asked: Asked) -> list[tuple[int, float]]:
        """Step and loss of every line of the metrics, in the order of the file."""
        blob = self.cloud.services.storage.read_bytes(f"{self.record(asked).folder}/metrics.jsonl")
        assert blob is not None
        lines = [json.loads(line) for line in blob.data.splitlines()]
        return [(line["step"], line["loss"]) for line in lines if "loss" in line]

    def spans(self) -> list[Span]:
        """The jobs of the mix, by the stand-in's journal."""
        jobs = {job["name"].rpartition("/")[2]: job for job in self.cloud.services.vertex("us-central1").list("")}
        began: dict[str, datetime] = {}
        ended: dict[str, datetime] = {}
        for entry in StandIns(self.cloud).journal("vertex"):
            if entry["event"] == "job_state" and entry["job"] in jobs:
                moment = datetime.fromisoformat(entry["time"])
                began.setdefault(entry["job"], moment)
                if entry["state"] in FINAL:
                    ended[entry["job"]] = moment
        mine = [name for name in began if jobs[name]["labels"]["experiment"] == "mix"]
        return [Span(jobs[name]["labels"]["run-key"], _gpus(jobs[name]), began[name], ended[name]) for name in mine]


def _gpus(job: dict[str, Any]) -> int:
    pools = job["jobSpec"]["workerPoolSpecs"]
    return sum(int(pool["machineSpec"].get("acceleratorCount", 0)) * int(pool.get("replicaCount", 1)) for pool in pools)


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
    mix.prepare()
    alone = Asked("alone", 1, CLASSES["normal"])
    mix.start(alone)
    mix.finish(alone)
    for asked in runs[:18]:
        mix.start(asked)
    _until_training(mix)
    cloud.kill("triggerer")
    mix.start(runs[18])
    mix.finish(runs[18])
    cloud.kill("scheduler")
    _until_training(mix)
    mix.start(runs[19])
    mix.finish(*runs)
    return Shown(mix, alone, runs, mix.spans())


def _until_training(mix: Mix) -> None:
    """Wait until the GPUs are in use by jobs that train."""

    def training() -> bool:
        jobs = mix.cloud.services.vertex("us-central1").list('state="JOB_STATE_RUNNING"')
        return sum(_gpus(job) for job in jobs) >= QUOTA - 1

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


def test_every_run_can_say_why_it_waited(shown: Shown) -> None:
    for asked in shown.runs:
        story = shown.mix.record(asked).story
        assert any(line.what.startswith("intends") for line in story), asked.name
    log = shown.mix.cloud.log("queue_mix", shown.runs[19].name, "train")
    assert "NVIDIA_L4/us-central1/standard" in log
