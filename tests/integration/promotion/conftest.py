"""Runs whose training ended, and the models that they become, on a real GCS server."""

from __future__ import annotations

import json
import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainops import naming
from trainops.config.plan import PlannedChampion, RunPlan
from trainops.gcp.storage import Document, Storage
from trainops.jobspec.installation import command
from trainops.policy.promotion_gate import Decision
from trainops.policy.record import Attempt, Record, TaskTry, Verdict
from trainops.settings import Settings
from trainops.steps import promotion
from trainops.steps.channels import Channel, Pointer, read_channel
from trainops.steps.model_versions import VersionManifest, read_manifest, version_name
from trainops.steps.outcome import check_outputs
from trainops.steps.promotion import Promoted

MODEL = "stdlib-tiny"
DATASET, TOKENIZER = "a" * 16, "b" * 16
RESULT = {
    "schema": 1,
    "status": "succeeded",
    "step": 600,
    "steps": 600,
    "tokens": 1228800,
    "train_seconds": 130.0,
    "tokens_per_second": 9000.0,
    "parameters": 1000000,
    "replicas": 2,
    "eval_loss_before": 7.7,
    "eval_loss": 3.1,
    "eval_tokens": 65536,
    "unigram_entropy": 5.9,
    "sample": "def f():\n    pass",
    "resumed_from": None,
}


def make_plan(number: int = 1, *, day: int = 29, **promotion: Any) -> RunPlan:
    """A plan of the run number `number` on data of a day of November 2026."""
    return RunPlan.from_json({
        "schema": 1,
        "experiment": "stdlib_tiny",
        "dag_id": "train_stdlib_tiny",
        "run_id": f"manual__{number}",
        "run_key": f"stdlib_tiny-20261130t0230-{number:08x}",
        "data_date": f"2026-11-{day:02}",
        "environment": "test",
        "owner": "language-team",
        "dataset": {"name": "stdlib", "description": "Python's standard library", "path": "{python_stdlib}"},
        "tokenizer": {"vocab_size": 2048},
        "trainer": {"steps": 600, "model": {}},
        "training_input": {},
        "tokenize_input": {},
        "priority": 50,
        "estimate_hours": None,
        "max_running_hours": 1.0,
        "max_waiting_hours": 1.0,
        "promotion": {"model": MODEL, **promotion},
        "conf": {},
    })


class Training:
    """A training that ended: its objects are in the work bucket."""

    def __init__(self, storage: Storage, settings: Settings, plan: RunPlan) -> None:
        self.storage, self.settings, self.plan = storage, settings, plan
        self.folder = naming.generation_folder(settings.work, plan.experiment, plan.run_key, 1)
        self.tokens = naming.tokens_folder(settings.work, DATASET, TOKENIZER)

    def write_all(self, **changes: Any) -> None:
        self.write_record()
        self.write_metrics(6.0, 3.2)
        self.write_model()
        self.write_result(**changes)

    def write(self, name: str, data: bytes) -> None:
        self.storage.write_bytes(f"{self.folder}/{name}", data, generation=None)

    def write_result(self, **changes: Any) -> None:
        result = RESULT | {"model": f"{self.folder}/model"} | changes
        self.write("result.json", json.dumps(result).encode())

    def weights(self, values: int = 4) -> bytes:
        """A file of one tensor of 32-bit floats, by hand."""
        header = json.dumps({"weight": {"dtype": "F32", "shape": [values], "data_offsets": [0, 4 * values]}}).encode()
        return struct.pack("<Q", len(header)) + header + bytes(4 * values)

    def write_metrics(self, *losses: float) -> None:
        lines = [json.dumps({"step": 10 * n, "steps": 600, "loss": loss}) for n, loss in enumerate(losses, start=1)]
        self.write("metrics.jsonl", "\n".join([*lines, '{"step": 600, "eval_loss": 3.1}']).encode())

    def write_model(self, weights: bytes | None = None) -> None:
        self.write("model/config.json", b'{"model_type": "llama"}')
        self.write("model/model.safetensors", weights or self.weights())
        self.write("model/tokenizer.json", b"{}")
        self.write("model/generation_config.json", b"{}")

    def write_record(self) -> None:
        work = self.settings.work
        args = ["--config", f"{self.folder}/plan.json", "--tokens", self.tokens, "--job-dir", self.folder]
        package = f"{work}/packages/trainer/0.1.0/cccccccccccccccc/trainer-0.1.0.tar.gz"
        container = {"imageUri": "image", "command": command("trainer.task", [package]), "args": args}
        now = datetime(2026, 11, 30, tzinfo=UTC)
        attempt = Attempt(
            number=1, writer="w", intent_at=now, create_deadline=now, job_name="customJobs/1", bound_at=now,
            ended_at=now + timedelta(minutes=90), verdict=Verdict.SUCCEEDED,
        )  # fmt: skip
        machines = {"machineSpec": {"machineType": "n1-standard-8"}, "replicaCount": "2"}
        record = Record(
            job_key=f"{self.plan.run_key}-submit_training",
            run_key=self.plan.run_key,
            experiment=self.plan.experiment,
            owner=TaskTry(dag_id=self.plan.dag_id, run_id=self.plan.run_id, task_id="submit_training"),
            opened_at=now,
            region="us-central1",
            spec={"jobSpec": {"workerPoolSpecs": [machines | {"containerSpec": container}]}},
            spec_hash="0",
            folder=self.folder,
            attempts=(attempt,),
        )
        uri = naming.record_uri(work, self.plan.experiment, self.plan.run_key, "submit_training")
        self.storage.write_json(uri, record.to_json(), generation=None)
        self.storage.write_json(f"{self.tokens}/manifest.json", {"bytes_per_token": 2.9}, generation=None)


class Registry:
    """The models of one environment, and runs that want into them."""

    model = MODEL

    def __init__(self, storage: Storage, settings: Settings) -> None:
        self.storage, self.settings = storage, settings

    def plan(self, number: int = 1, *, day: int = 29, **promotion: Any) -> RunPlan:
        return make_plan(number, day=day, **promotion)

    def finish(
        self,
        number: int = 1,
        *,
        eval_loss: float = 3.1,
        day: int = 29,
        champion: PlannedChampion | None = None,
        dataset: str = DATASET,
        result: dict[str, Any] | None = None,
        **promotion: Any,
    ) -> RunPlan:
        """Leave the outputs of a training, checked, and return its plan."""
        plan = make_plan(number, day=day, **promotion).model_copy(update={"champion": champion})
        training = Training(self.storage, self.settings, plan)
        training.tokens = naming.tokens_folder(self.settings.work, dataset, TOKENIZER)
        training.write_all(eval_loss=eval_loss, **(result or {}))
        check_outputs(self.storage, training.plan, 1, self.settings)
        return training.plan

    def decide(self, plan: RunPlan) -> Decision:
        return promotion.decide(self.storage, plan, 1, self.settings)

    def promote(self, plan: RunPlan) -> Promoted:
        return promotion.promote(self.storage, plan, 1, self.settings, by=plan.run_key)

    def rollback(
        self, to: str | None = None, *, by: str = "ann", channel: str = "production", seen: int | None = None
    ) -> Promoted:
        return promotion.rollback(self.storage, self.settings, MODEL, channel, to=to, by=by, seen=seen)

    def version(self, plan: RunPlan) -> str:
        return version_name(plan, 1)

    def manifest(self, plan: RunPlan) -> VersionManifest | None:
        return read_manifest(self.storage, self.settings.models, MODEL, self.version(plan))

    def channel(self) -> Channel:
        return read_channel(self.storage, self.settings.models, MODEL, "production")

    def pointer(self) -> Pointer:
        pointer = self.channel().pointer
        assert pointer is not None
        return pointer

    def placed(self) -> list[str]:
        """The versions that production pointed at, newest first."""
        return [placement.version for placement in self.pointer().placements]

    def run_object(self, plan: RunPlan, name: str) -> Document:
        """One of the JSON objects directly in a run's folder, with its storage generation."""
        uri = f"{naming.run_folder(self.settings.work, plan.experiment, plan.run_key)}/{name}"
        document = self.storage.read_json(uri)
        assert document is not None
        return document

    def contents(self) -> dict[str, Any]:
        """Every object of both buckets, without what differs from try to try: moments and generations."""
        found: dict[str, Any] = {}
        for bucket in (self.settings.work, self.settings.models):
            for info in self.storage.list(f"{bucket}/"):
                blob = self.storage.read_bytes(info.uri)
                assert blob is not None
                name = info.uri.removeprefix(bucket)
                found[name] = _without_moments(json.loads(blob.data)) if name.endswith(".json") else blob.data
        return found


@pytest.fixture
def registry(storage: Storage, settings: Settings) -> Registry:
    return Registry(storage, settings)


@pytest.fixture
def training(storage: Storage, settings: Settings) -> Training:
    """A training whose outputs are complete, and not checked yet."""
    training = Training(storage, settings, make_plan())
    training.write_all()
    return training


@pytest.fixture
def three(registry: Registry) -> list[str]:
    """Three versions, promoted one after the other."""
    plans = [registry.finish(number, eval_loss=3.1 - number / 10) for number in range(1, 4)]
    for plan in plans:
        registry.promote(plan)
    return [registry.version(plan) for plan in plans]


@pytest.fixture
def environment(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings as a file, as the command line reads them."""
    folder = tmp_path / "environments"
    folder.mkdir()
    (folder / "test.yaml").write_text(yaml.safe_dump(settings.model_dump(mode="json", exclude={"name", "source"})))
    monkeypatch.setenv("TRAINOPS_CONFIGS", str(tmp_path))
    monkeypatch.setenv("TRAINOPS_ENVIRONMENT", "test")


def _without_moments(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_moments(item) for item in value]
    if not isinstance(value, dict):
        return value
    differ = {"promoted_at", "decided_at", "pointer_generation"}
    return {key: _without_moments(item) for key, item in value.items() if key not in differ}
