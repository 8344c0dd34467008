"""The job that all this is for, with all of its replicas: one GPU master, nine workers, three parameter servers."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import yaml

from trainops.policy.record import Record, TaskTry
from trainops.settings import Settings
from trainops.steps.packaging import package_trainer
from trainops.steps.run_verdict import error_of
from trainops.steps.services import Services
from trainops.steps.start import JobRequest, begin
from trainops.steps.watch import Watch

ROOT = Path(__file__).resolve().parents[3]
SEEDS = ROOT / "tests" / "unit" / "jobspec" / "golden" / "inputs"
TRAINER = Path(__file__).with_name("trainer")
STEPS, BATCH = 25, 32
POOLS = {"workerpool0": ("chief", 1), "workerpool1": ("worker", 9), "workerpool2": ("ps", 3)}
"""Role and number of the replicas of each pool."""


def seed(spelling: str) -> dict[str, Any]:
    """The job as its owner wrote it."""
    value: dict[str, Any] = yaml.safe_load((SEEDS / f"seed_{spelling}.yaml").read_text())
    return value


def job_number(record: Record) -> str:
    return str(record.attempt and record.attempt.job_name).rpartition("/")[2]


def processes_of(record: Record) -> list[int]:
    """Processes of this machine that live in the job's environment."""
    job = {"CLOUD_ML_JOB_ID": job_number(record)}.items()
    return [one.pid for one in psutil.process_iter(["environ"]) if job <= (one.info["environ"] or {}).items()]


class Cloud:
    """Both stand-ins, the trainer's package where the job looks for it, and how an operator acts there."""

    def __init__(self, services: Services, vertex_url: str) -> None:
        self.services = services
        self.vertex_url = vertex_url
        self.said: list[str] = []
        self.most_processes = 0
        """Most replicas of a job that were seen to run at once."""

    def begin(self, name: str, training_input: dict[str, Any]) -> Record:
        request = JobRequest(
            job_key=f"{name}-train", run_key=name, experiment="seed", task="train", display_name=name,
            training_input=training_input,
        )  # fmt: skip
        current = TaskTry(dag_id="seed", run_id=name, task_id="train", try_number=1, max_tries=0)
        storage, settings = self.services.storage, self.services.settings
        return begin(storage, settings, self.uri(name), request, current, actor="train")[0]

    def follow(self, name: str) -> Record:
        """Submit, and look again and again until the job has ended, as the operator does."""
        watch = Watch(self.services, self.uri(name), until="ended", actor="train", say=self.said.append)
        deadline = time.monotonic() + 240
        while not watch.look().done:
            assert time.monotonic() < deadline, self.said
            self.most_processes = max(self.most_processes, len(processes_of(watch.run.store.load())))
            time.sleep(0.5)
        return watch.run.store.load()

    def uri(self, name: str) -> str:
        return f"{self.services.settings.work}/runs/seed/{name}/train.json"

    def read(self, uri: str) -> Any:
        found = self.services.storage.read_json(uri)
        assert found is not None, uri
        return found.value

    def journal(self, record: Record, event: str) -> list[dict[str, Any]]:
        """What the stand-in noted of the replicas of a record's job."""
        query = {"event": event, "job": job_number(record)}
        reply = httpx.get(f"{self.vertex_url}/journal", params=query).raise_for_status()
        return [entry for entry in reply.json()["entries"] if entry["replica"] != "install"]


@pytest.fixture
def cloud(vertex_settings: Settings, client: Any, vertex_url: str) -> Iterator[Cloud]:
    bucket = client.create_bucket("my-bucket")
    services = Services(vertex_settings)
    package = services.storage.read_bytes(package_trainer(services.storage, TRAINER, vertex_settings.work).uri)
    assert package is not None
    services.storage.write_bytes("gs://my-bucket/packages/trainer.tar.gz", package.data, generation=0)
    yield Cloud(services, vertex_url)
    services.close()
    bucket.delete(force=True)


def test_both_spellings_ask_for_the_same_job(cloud: Cloud) -> None:
    found = [cloud.begin(spelling, seed(spelling)) for spelling in ("rest", "snake_case")]
    specs = [record.spec["jobSpec"] for record in found]
    assert specs[0] == specs[1]
    assert [(pool["machineSpec"], pool["replicaCount"]) for pool in specs[0]["workerPoolSpecs"]] == [
        ({"machineType": "n1-standard-8", "acceleratorType": "NVIDIA_TESLA_V100", "acceleratorCount": 1}, "1"),
        ({"machineType": "n1-highcpu-16"}, "9"),
        ({"machineType": "n1-highmem-8"}, "3"),
    ]
    for record in found:
        notes = {note["field"]: note for note in cloud.read(f"{record.folder}/translation.json")["notes"]}
        assert notes["masterType"]["verdict"] == "changed"
        assert "n1-standard-8 is taken instead" in notes["masterType"]["text"]


def test_it_trains_on_all_thirteen_replicas_each_in_its_role(cloud: Cloud) -> None:
    cloud.begin("trained", seed("rest"))
    record = cloud.follow("trained")
    assert error_of(record) is None, cloud.said
    assert record.verdict == "succeeded"

    assert cloud.most_processes == 13
    assert processes_of(record) == []
    names = {f"{pool}-{index}": f"{role} {index}" for pool, (role, count) in POOLS.items() for index in range(count)}
    started, ended = (cloud.journal(record, event) for event in ("replica_started", "replica_ended"))
    assert sorted(entry["replica"] for entry in started) == sorted(names)
    assert {entry["replica"]: entry["exit_code"] for entry in ended} == dict.fromkeys(names, 0)
    told = [re.fullmatch(r"\[(\S+)\] (\w+ \d+) is rank (\d+) of 13", line) for line in cloud.said]
    assert {line[1]: line[2] for line in told if line} == names
    assert sorted(int(line[3]) for line in told if line) == list(range(13))

    result = cloud.read("gs://my-bucket/job-output/result.json")
    replicas = result["replicas"]
    assert [one["replica"] for one in replicas] == list(names.values())
    assert [one["examples"] for one in replicas] == [STEPS * BATCH] * 10 + [10 * STEPS * BATCH] * 3
    assert len({one["parameters"] for one in replicas}) == 1
    assert result["loss"]["after"] < 0.8 * result["loss"]["before"]
    assert result["loss"]["after"] == pytest.approx(result["loss"]["alone"], rel=1e-4)
    assert len(cloud.read("gs://my-bucket/models/parameters.json")) == 161


def test_a_worker_that_fails_ends_the_job_with_its_name_code_and_last_line_and_nobody_stays(cloud: Cloud) -> None:
    body = seed("snake_case")
    body["training_input"] |= {"worker_count": "2", "parameter_server_count": "1"}
    body["training_input"]["args"].append("--failing=worker-1")
    cloud.begin("failed", body)
    record = cloud.follow("failed")
    assert record.attempt is not None
    assert (record.verdict, record.attempt.exit_code) == ("failed", 3)
    message = str(error_of(record))
    assert "The replica workerpool1-1 exited with a non-zero status of 3" in message
    assert "worker 1 was told to fail" in message
    assert len(cloud.journal(record, "replica_ended")) == 4
    assert processes_of(record) == []
