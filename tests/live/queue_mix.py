"""Runs of one job each that share a pool of eight GPUs of the stand-in, on the local cloud's Airflow."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tests.chaos.airflow import Airflow
from tests.chaos.stand_ins import StandIns

from trainops.policy.record import Record
from trainops.steps.record_store import RecordStore

if TYPE_CHECKING:
    from tests.live.cloud import Cloud

QUOTA = 8
MACHINES = {1: "g2-standard-12", 2: "g2-standard-24", 4: "g2-standard-48", 8: "g2-standard-96"}
CLASSES = {"low": 25, "normal": 50, "high": 75}
URGENT = 100
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


class Mix:
    """The runs on a running Airflow."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.airflow = Airflow.of(cloud)
        self._plan: dict[str, Any] = {}
        self._conf: dict[str, Any] = {}

    def prepare(self, name: str) -> None:
        """Have a run of the whole chain, of that name, make tokens and package; the runs of the mix train on them."""
        (self.cloud.home.dags / "train.py").touch()
        for dag in ("train_manual", "queue_mix"):
            self.cloud.wait_for_dag(dag)
            self.airflow.unpause(dag)
        run = self.cloud.trigger("train_manual", name, {"steps": 2, "data_date": "2026-11-28"})
        assert self.cloud.finish("train_manual", run) == "success"
        given = {
            task: self.cloud.api.return_value("train_manual", run, task)
            for task in ("stage_dataset", "package_trainer")
        }
        self._plan = self.cloud.plan("train_manual", run)
        self._conf = {"tokens": given["stage_dataset"]["tokens"], "package": given["package_trainer"]["uri"]}

    def start(self, asked: Asked, steps: int) -> None:
        """Write the plan of a run of so many steps, and trigger it."""
        training = {**self._plan["trainer"], "steps": steps, "checkpoint_every": 50, "log_every": 1, "eval_every": 0}
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
        """The record of its job key."""
        return RecordStore(self.cloud.services.storage, self.record_uri(asked)).load()

    def record_uri(self, asked: Asked) -> str:
        """Where its record is."""
        return f"{self.cloud.services.settings.work}/runs/mix/{asked.name}/train.json"

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
        return [Span(jobs[name]["labels"]["run-key"], gpus_of(jobs[name]), began[name], ended[name]) for name in mine]


def gpus_of(job: dict[str, Any]) -> int:
    """GPUs of all replicas of a job."""
    pools = job["jobSpec"]["workerPoolSpecs"]
    return sum(int(pool["machineSpec"].get("acceleratorCount", 0)) * int(pool.get("replicaCount", 1)) for pool in pools)
