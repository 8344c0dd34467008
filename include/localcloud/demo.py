"""The demo: one real run of a DAG, triggered by Airflow's own command line and followed to its summary."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from localcloud.airflow_api import AirflowApi, TaskState
from localcloud.airflow_environment import airflow_settings
from localcloud.catalogue import BUCKETS
from localcloud.demo_summary import summary_lines
from localcloud.errors import LocalCloudError, UsageError
from localcloud.files import read_json
from localcloud.home import Home
from localcloud.process import clean_environment
from localcloud.run_display import RunDisplay
from localcloud.training_metrics import MetricsReader

PARSE_SECONDS = 120.0
"""Longest wait for the DAG to be parsed."""
LOOK_SECONDS = 1.5
LOG_LINES = 25
"""Lines of a failed task's log that are shown."""


class Demo:
    """One run of the DAG `train_<experiment>`."""

    def __init__(self, home: Home, console: Console, experiment: str, conf: dict[str, Any]) -> None:
        self._home, self._console = home, console
        self._experiment, self._conf = experiment, conf
        self._dag = f"train_{experiment}"
        self._run = f"demo__{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}"
        self._endpoints = read_json(home.endpoints_file)
        self._api = AirflowApi(*(self._endpoints[key] for key in ("airflow", "airflow_user", "airflow_password")))

    def run(self) -> int:
        """Trigger, follow, sum up; 0 when the run succeeded and 1 when it failed. Raises LocalCloudError."""
        try:
            self._wait_for_dag()
            self._api.unpause(self._dag)
            self._trigger()
            state, run_key = self._follow()
            if state != "success":
                self._explain_failure()
                return 1
            return self._sum_up(run_key)
        finally:
            self._api.close()

    def _wait_for_dag(self) -> None:
        deadline = time.monotonic() + PARSE_SECONDS
        while not self._api.dag_exists(self._dag):
            if time.monotonic() > deadline:
                errors = "\n".join(self._api.import_errors())
                raise UsageError(f"there is no DAG {self._dag} in {self._home.dags}; {errors or 'no file is broken'}")
            time.sleep(1)

    def _trigger(self) -> None:
        arguments = ["dags", "trigger", self._dag, "--run-id", self._run, "--conf", json.dumps(self._conf)]
        self._say(f"$ airflow {' '.join(arguments[:-1])} '{arguments[-1]}'")
        answer = self._run_python("airflow", *arguments)
        if answer.returncode != 0:
            raise LocalCloudError(f"airflow dags trigger failed:\n{answer.stderr.strip()[-2000:]}")

    def _follow(self) -> tuple[str, str]:
        """Show the run until its end; return its state and its run key ("" when no task told it)."""
        run_key, metrics = "", None
        try:
            with RunDisplay(self._console, f"{self._dag} {self._run}") as display:
                while True:
                    state = self._api.run_state(self._dag, self._run)
                    run_key = run_key or self._find_run_key()
                    if run_key and metrics is None:
                        prefix = f"runs/{self._experiment}/{run_key}/"
                        metrics = MetricsReader(self._endpoints["storage"], BUCKETS[0], prefix)
                    tasks = self._api.task_states(self._dag, self._run)
                    display.show(tasks, metrics.read() if metrics else None)
                    if state in {"success", "failed"}:
                        return state, run_key
                    time.sleep(LOOK_SECONDS)
        finally:
            if metrics is not None:
                metrics.close()

    def _find_run_key(self) -> str:
        value = self._api.return_value(self._dag, self._run, "resolve_run")
        value = json.loads(value) if isinstance(value, str) else value
        return str(value.get("run_key", "")) if isinstance(value, dict) else ""

    def _sum_up(self, run_key: str) -> int:
        answer = self._run_python("trainops", "runs", "show", run_key, "--output", "json")
        if answer.returncode != 0:
            raise LocalCloudError(
                f"the run succeeded, but `trainops runs show {run_key}` failed: {answer.stderr.strip()}"
            )
        for line in summary_lines(json.loads(answer.stdout), self._endpoints):
            self._say(line)
        return 0

    def _run_python(self, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program of this environment as Airflow's components see the world, with the project's own library."""
        library = {"PYTHONPATH": str(self._home.root / "plugins")}
        return subprocess.run(
            [sys.executable, "-m", module, *arguments],
            env=clean_environment() | airflow_settings(self._home) | library,
            cwd=self._home.root,
            capture_output=True,
            text=True,
            check=False,
        )

    def _explain_failure(self) -> None:
        tasks = self._api.task_states(self._dag, self._run)
        failed = [task for task in tasks if task.state == "failed"]
        self._say(f"\nThe run failed: {', '.join(task.label for task in failed) or 'no task did'}")
        for task in failed[:3]:
            self._show_log(task)
        self._say(f"\nLook at {self._endpoints['airflow']}/dags/{self._dag}/runs/{self._run}")
        self._say(f"  login {self._endpoints['airflow_user']} / {self._endpoints['airflow_password']}")
        self._say(f"  logs of all components: {self._home.logs}")

    def _show_log(self, task: TaskState) -> None:
        self._say(f"\n--- {task.label}, the last lines of its log ---")
        for line in self._api.log_lines(self._dag, self._run, task)[-LOG_LINES:]:
            self._say(f"  {line}")

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)
