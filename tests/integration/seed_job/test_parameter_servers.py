"""The project's own trainer in the seed's shape, as one job of the stand-in: the same losses as one process alone."""

from __future__ import annotations

import json
import sysconfig
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainops.config.dataset import Dataset
from trainops.policy.record import Record, TaskTry
from trainops.settings import Settings, trainer_folder
from trainops.steps.packaging import package_trainer
from trainops.steps.run_verdict import error_of
from trainops.steps.services import Services
from trainops.steps.staging import stage_dataset
from trainops.steps.start import JobRequest, begin
from trainops.steps.watch import Watch

ROOT = Path(__file__).resolve().parents[3]
pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

PLAN: dict[str, Any] = {
    "tokenizer": {"vocab_size": 400, "heldout_fraction": 0.2},
    "trainer": {
        "model": {"family": "llama", "hidden_size": 32, "layers": 2, "heads": 2, "context": 32},
        "steps": 12,
        "warmup_steps": 2,
        "eval_every": 4,
        "eval_batches": 2,
        "checkpoint_every": 6,
        "log_every": 1,
    },
}
SEED: dict[str, Any] = yaml.safe_load((ROOT / "tests/unit/jobspec/golden/inputs/seed_rest.yaml").read_text())
"""One GPU master, nine workers, three parameter servers."""
ALONE = {key: value for key, value in SEED.items() if not key.startswith(("worker", "parameterServer"))}


class Trainings:
    """Runs of the trainer as jobs of the stand-in, on the same tokens."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.said: list[str] = []
        work, storage = services.settings.work, services.storage
        self.package = package_trainer(storage, trainer_folder(), work).uri
        self.plan, self.tokens = f"{work}/plan.json", f"{work}/tokens"
        storage.write_json(self.plan, PLAN, generation=0)
        description, path = "Modules of the standard library.", sysconfig.get_path("stdlib")
        text = Dataset(name="small", description=description, path=path, include=["[a-h]*.py"])
        dataset = stage_dataset(storage, text, date(2026, 11, 29), work).uri
        arguments = ["--dataset", dataset, "--output", self.tokens]
        machine = {key: value for key, value in ALONE.items() if key != "jobDir"}
        self.run("tokens", {**machine, "pythonModule": "trainer.tokenize", "args": arguments})

    def train(self, name: str, job: dict[str, Any]) -> str:
        """Train to the end, with the job's own arguments and those that say where, and return the folder of the job."""
        folder = f"{self.services.settings.work}/{name}"
        arguments = [f"--model_dir={folder}/model", *job["args"][1:], "--tokens", self.tokens]
        self.run(name, {**job, "jobDir": folder, "args": arguments})
        return folder

    def run(self, name: str, job: dict[str, Any]) -> Record:
        given = {"packageUris": [self.package], "args": [*job["args"], "--config", self.plan]}
        request = JobRequest(
            job_key=f"{name}-train", run_key=name, experiment="shapes", task="train", display_name=name,
            training_input={**job, **given},
        )  # fmt: skip
        settings, storage = self.services.settings, self.services.storage
        uri = f"{settings.work}/runs/shapes/{name}/train.json"
        current = TaskTry(dag_id="shapes", run_id=name, task_id="train", try_number=1, max_tries=0)
        begin(storage, settings, uri, request, current, actor="train")
        watch = Watch(self.services, uri, until="ended", actor="train", say=self.said.append)
        deadline = time.monotonic() + 900
        while not watch.look().done:
            assert time.monotonic() < deadline, self.said
            time.sleep(0.5)
        record = watch.run.store.load()
        assert error_of(record) is None, self.said
        return record

    def losses(self, folder: str) -> dict[tuple[int, str], float]:
        found = self.services.storage.read_bytes(f"{folder}/metrics.jsonl")
        assert found is not None
        lines = [json.loads(line) for line in found.data.splitlines()]
        return {(line["step"], key): line[key] for line in lines for key in ("loss", "eval_loss") if key in line}

    def result(self, folder: str) -> dict[str, Any]:
        found = self.services.storage.read_json(f"{folder}/result.json")
        assert found is not None
        value: dict[str, Any] = found.value
        return value


@pytest.fixture
def trainings(vertex_settings: Settings) -> Iterator[Trainings]:
    services = Services(vertex_settings)
    yield Trainings(services)
    services.close()


def test_a_job_of_a_master_nine_workers_and_three_parameter_servers_trains_as_one_process(trainings: Trainings) -> None:
    many, one = trainings.train("many", SEED), trainings.train("one", ALONE)

    assert trainings.losses(many) == pytest.approx(trainings.losses(one), abs=1e-4)
    assert trainings.result(many)["eval_loss"] == pytest.approx(trainings.result(one)["eval_loss"], abs=1e-4)
    assert (trainings.result(many)["replicas"], trainings.result(many)["strategy"]) == (13, "parameter_server")
    assert (trainings.result(one)["replicas"], trainings.result(one)["strategy"]) == (1, "single")
    steps = {step for step, key in trainings.losses(many) if key == "loss"}
    assert steps == set(range(1, PLAN["trainer"]["steps"] + 1))
