"""A local cloud with a real Airflow in a folder of its own, with small experiments, and how a test acts on it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest
import yaml

from localcloud.airflow_api import AirflowApi
from localcloud.home import Home
from localcloud.state import CloudState, ComponentState
from trainops.settings import Settings
from trainops.steps.services import Services

PROJECT = Path(__file__).resolve().parents[2]
DATES = ("2026-10-20", "2026-10-21", "2026-10-24", "2026-10-25", "2026-10-26", "2026-11-28")
"""Days of the small dataset, beside the days around now; in Europe/Berlin the clock was set back on 2026-10-25."""

TINY: dict[str, Any] = {
    "description": "A very small model, for tests.",
    "owner": "tests",
    "schedule": {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "start_date": "2026-10-01", "catchup": False},
    "dataset": "diary",
    "tokenizer": {"vocab_size": 300, "heldout_fraction": 0.2},
    "model": {"family": "llama", "hidden_size": 32, "layers": 1, "heads": 2, "context": 32},
    "training": {
        "steps": 6,
        "batch_size": 4,
        "warmup_steps": 1,
        "eval_every": 0,
        "checkpoint_every": 3,
        "log_every": 1,
    },
    "training_input": {
        "scaleTier": "CUSTOM",
        "masterType": "n1-standard-8",
        "masterConfig": {"acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": 1}},
    },
    "promotion": {"must_beat_unigram": False},
}


@dataclass
class Cloud:
    """The local cloud under test, and how a person and a test act on it."""

    home: Home
    configs: Path
    api: AirflowApi
    services: Services
    endpoints: dict[str, Any]

    def localcloud(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the local cloud as a person does."""
        return _localcloud(self.home.root, *arguments)

    def airflow(self, *arguments: str) -> str:
        """Run the `airflow` command line against it, and return what it printed."""
        done = self.localcloud("airflow", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def trigger(self, dag: str, run_id: str, conf: dict[str, Any] | None = None) -> str:
        """Start a run by the command line, with conf JSON or without."""
        options = ["--conf", json.dumps(conf)] if conf is not None else []
        self.airflow("dags", "trigger", dag, "--run-id", run_id, *options)
        return run_id

    def wait_for_dag(self, dag: str, seconds: float = 120) -> None:
        """Wait until Airflow has parsed the DAG."""
        self.until(lambda: self.api.dag_exists(dag), seconds, lambda: self.api.import_errors())

    def finish(self, dag: str, run_id: str, seconds: float = 420) -> str:
        """Wait for a run's end and return its state."""

        def ended() -> bool:
            return self.api.run_state(dag, run_id) in {"success", "failed"}

        self.until(ended, seconds, lambda: self.states(dag, run_id))
        print(f"{dag} {run_id} ended: {self.states(dag, run_id)}")  # pytest shows it when the test fails
        return self.api.run_state(dag, run_id)

    def states(self, dag: str, run_id: str) -> dict[str, str]:
        """State of each task of a run."""
        return {task.name: task.state for task in self.api.task_states(dag, run_id)}

    def tries(self, dag: str, run_id: str) -> dict[str, int]:
        """How often each task of a run was tried."""
        return {task.name: task.try_number for task in self.api.task_states(dag, run_id)}

    def log(self, dag: str, run_id: str, task: str) -> str:
        """The log of a task's last try."""
        found = next(one for one in self.api.task_states(dag, run_id) if one.name == task)
        return "\n".join(self.api.log_lines(dag, run_id, found))

    def plan(self, dag: str, run_id: str) -> dict[str, Any]:
        """The plan that a run resolved."""
        given = self.api.return_value(dag, run_id, "resolve_run")
        found = self.services.storage.read_json(given["plan_uri"])
        assert found is not None
        value: dict[str, Any] = found.value
        return value

    def jobs(self, run_key: str) -> list[dict[str, Any]]:
        """The jobs that the Vertex stand-in has of a run."""
        return self.services.vertex("us-central1").list(f'labels.run-key="{run_key}"')

    def story(self, run_key: str) -> dict[str, Any]:
        """What `trainops runs show` tells of a run."""
        value: dict[str, Any] = self.trainops("runs", "show", run_key)
        return value

    def trainops(self, *arguments: str) -> Any:
        """Run the `trainops` command line on its configs, and return the JSON that it printed."""
        environment = os.environ | {"TRAINOPS_CONFIGS": str(self.configs), "PYTHONPATH": str(PROJECT / "plugins")}
        command = [sys.executable, "-m", "trainops", *arguments, "--output", "json"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def runs(self, dag: str, kind: str | None = None) -> list[dict[str, Any]]:
        """The runs of a DAG, or those of a type such as `backfill`, in the order in which they could start."""
        login = {"username": self.endpoints["airflow_user"], "password": self.endpoints["airflow_password"]}
        with httpx.Client(base_url=self.endpoints["airflow"], timeout=30) as client:
            token = client.post("/auth/token", json=login).json()["access_token"]
            answer = client.get(f"/api/v2/dags/{dag}/dagRuns", headers={"authorization": f"Bearer {token}"})
        found: list[dict[str, Any]] = answer.raise_for_status().json()["dag_runs"]
        return sorted((run for run in found if kind in {None, run["run_type"]}), key=lambda run: str(run["run_after"]))

    def component(self, name: str) -> ComponentState:
        """One component, as of now."""
        state = CloudState.load(self.home.state_file)
        assert state is not None
        return next(one for one in state.components if one.name == name)

    def kill(self, *names: str) -> None:
        """Kill components (-9) and wait until they are healthy again."""
        before = {name: self.component(name).process for name in names}
        for identity in before.values():
            assert identity is not None
            os.kill(identity.pid, 9)

        def back() -> bool:
            now = {name: self.component(name) for name in names}
            return all(one.process != before[name] and one.status == "healthy" for name, one in now.items())

        self.until(back, 180, lambda: [self.component(name) for name in names])

    def add_experiment(self, name: str, **changes: Any) -> str:
        """Write an experiment's file, alone, and return the id of its DAG."""
        value = {**TINY, **changes}
        (self.configs / "experiments" / f"{name}.yaml").write_text(yaml.safe_dump(value))
        return f"train_{name}"

    @staticmethod
    def until(done: Callable[[], bool], seconds: float, tell: Callable[[], object]) -> None:
        """Wait until `done`; fail with what `tell` tells."""
        deadline = time.monotonic() + seconds
        while not done():
            if time.monotonic() > deadline:
                pytest.fail(f"not within {seconds:.0f} s: {tell()}")  # in full; an assertion would shorten it
            time.sleep(0.5)


@contextmanager
def running_cloud(root: Path) -> Generator[Cloud]:
    """Make a project in `root`, bring its cloud up, and down again at the end."""
    configs = _make_root(root)
    patch = pytest.MonkeyPatch()
    patch.setenv("TRAINOPS_CONFIGS", str(configs))
    answer = _localcloud(root, "up")
    try:
        assert answer.returncode == 0, answer.stdout + answer.stderr
        connected = _connect(root, configs)
        yield connected
        connected.api.close()
        connected.services.close()
    finally:
        _localcloud(root, "down")
        patch.undo()


def _make_root(root: Path) -> Path:
    """A project folder: the DAGs and the library of this project, small experiments, a folder of text per day."""
    (root / "dags").mkdir()
    for file in (PROJECT / "dags").glob("*.py"):
        shutil.copy(file, root / "dags" / file.name)
    for file in (Path(__file__).parent / "dags").glob("*.py"):
        shutil.copy(file, root / "dags" / file.name)
    (root / "plugins").symlink_to(PROJECT / "plugins")
    configs = root / "configs"
    shutil.copytree(PROJECT / "include" / "configs", configs, ignore=shutil.ignore_patterns("stdlib_*.yaml"))
    local = configs / "environments" / "local.yaml"
    settings = yaml.safe_load(local.read_text())
    settings |= {"endpoints": str(root / ".localcloud" / "endpoints.json"), "poll_seconds": 1}
    local.write_text(yaml.safe_dump(settings))
    diary = {"description": "A page a day.", "path": f"{root}/diary/dt={{data_date}}", "include": ["*.txt"]}
    (configs / "datasets" / "diary.yaml").write_text(yaml.safe_dump(diary | {"min_documents": 2}))
    now = datetime.now(ZoneInfo("Europe/Berlin")).date()
    recent = {(now - timedelta(days=days)).isoformat() for days in (-1, 0, 1, 2)}
    for date in {*DATES, *recent}:
        _write_pages(root / "diary" / f"dt={date}", date)
    for name in ("manual", "dated", "watched", "asked"):
        promotion = TINY["promotion"] | ({"approval": "required"} if name == "asked" else {})
        (configs / "experiments" / f"{name}.yaml").write_text(yaml.safe_dump({**TINY, "promotion": promotion}))
    return configs


def _write_pages(folder: Path, date: str) -> None:
    folder.mkdir(parents=True)
    for number in range(24):
        words = " ".join(f"{(number * 31 + word * 17) % 97} lines of the day {date}" for word in range(40))
        (folder / f"page-{number:02}.txt").write_text(f"Page {number} of {date}. {words}\n")


def _connect(root: Path, configs: Path) -> Cloud:
    home = Home.locate(str(root))
    endpoints = json.loads(home.endpoints_file.read_text())
    api = AirflowApi(endpoints["airflow"], endpoints["airflow_user"], endpoints["airflow_password"])
    local = yaml.safe_load((configs / "environments" / "local.yaml").read_text())
    addresses = {key: endpoints[key] for key in ("vertex", "storage", "logging")}
    settings = Settings.model_validate({**local, "name": "local", "endpoints": addresses})
    return Cloud(home, configs, api, Services(settings), endpoints)


def _localcloud(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "PYTHONPATH": str(PROJECT / "include"),
        "LOCALCLOUD_REREAD_SECONDS": "600",  # tests touch the DAG file that they want to be read
        "LOCALCLOUD_TRAINER_PYTHON": str(PROJECT / ".venv-trainer" / "bin" / "python"),
    }
    return subprocess.run(
        [sys.executable, "-m", "localcloud", "--root", str(root), *arguments],
        env=environment, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
