"""Airflow's REST API v2, as much of it as the demo needs; asks again while the API server is away."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from localcloud.errors import LocalCloudError

PATIENCE_SECONDS = 180.0
"""How long a server that does not answer (it is being started again) is asked."""


@dataclass(frozen=True)
class TaskState:
    """One task instance of a run."""

    name: str
    state: str
    try_number: int
    map_index: int
    started: str
    seconds: float | None

    @property
    def label(self) -> str:
        """Name with the map index of a mapped task."""
        return f"{self.name}[{self.map_index}]" if self.map_index >= 0 else self.name


class AirflowApi:
    """A client that logs in with the password and keeps the token."""

    def __init__(self, url: str, user: str, password: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=30.0, trust_env=False)
        self._login = {"username": user, "password": password}

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def dag_exists(self, dag: str) -> bool:
        """Say whether the DAG has been parsed."""
        return self._ask("GET", f"/api/v2/dags/{quote(dag)}").status_code == httpx.codes.OK

    def import_errors(self) -> list[str]:
        """Return what is wrong with DAG files."""
        errors = self._get("/api/v2/importErrors")["import_errors"]
        return [f"{error['filename']}: {error['stack_trace'].strip().splitlines()[-1]}" for error in errors]

    def unpause(self, dag: str) -> None:
        """Let the DAG run."""
        self._ask("PATCH", f"/api/v2/dags/{quote(dag)}", json={"is_paused": False}).raise_for_status()

    def run_state(self, dag: str, run: str) -> str:
        """Return queued, running, success or failed."""
        return str(self._get(_run(dag, run))["state"])

    def task_states(self, dag: str, run: str) -> list[TaskState]:
        """Return the task instances in the order of their starts, those not yet started last."""
        found = self._get(f"{_run(dag, run)}/taskInstances?limit=100")["task_instances"]
        tasks = [_task_state(one) for one in found]
        return sorted(tasks, key=lambda task: task.started or "9")

    def return_value(self, dag: str, run: str, task: str) -> Any:
        """Return what a task gave back, None while it has given nothing."""
        answer = self._ask("GET", f"{_run(dag, run)}/taskInstances/{quote(task)}/xcomEntries/return_value")
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        return answer.raise_for_status().json()["value"]

    def log_lines(self, dag: str, run: str, task: TaskState) -> list[str]:
        """Return the log of the last try of a task."""
        path = f"{_run(dag, run)}/taskInstances/{quote(task.name)}/logs/{max(task.try_number, 1)}"
        answer = self._ask("GET", f"{path}?full_content=true&map_index={task.map_index}", accept="application/json")
        if not answer.is_success:
            return []
        lines = answer.json()["content"]
        return [line for entry in lines if isinstance(entry, dict) for line in _log_text(entry).splitlines()]

    def _get(self, path: str) -> Any:
        return self._ask("GET", path).raise_for_status().json()

    def _ask(self, method: str, path: str, *, json: object = None, accept: str = "application/json") -> httpx.Response:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                answer = self._client.request(method, path, json=json, headers={"accept": accept})
                if answer.status_code == httpx.codes.UNAUTHORIZED:
                    self._log_in()
                elif answer.status_code < httpx.codes.INTERNAL_SERVER_ERROR:
                    return answer
                trouble = f"status {answer.status_code}"
            except httpx.HTTPError as error:
                trouble = str(error)
            if time.monotonic() > deadline:
                raise LocalCloudError(f"Airflow's API server does not answer: {trouble}")
            time.sleep(0.5)

    def _log_in(self) -> None:
        token = self._client.post("/auth/token", json=self._login).raise_for_status().json()["access_token"]
        self._client.headers["authorization"] = f"Bearer {token}"


def _run(dag: str, run: str) -> str:
    return f"/api/v2/dags/{quote(dag)}/dagRuns/{quote(run, safe='')}"


def _task_state(value: dict[str, Any]) -> TaskState:
    return TaskState(
        name=value["task_id"],
        state=value["state"] or "waiting",
        try_number=value["try_number"],
        map_index=value["map_index"],
        started=value["start_date"] or "",
        seconds=value["duration"],
    )


def _log_text(entry: dict[str, Any]) -> str:
    text = str(entry.get("event", ""))
    for error in entry.get("error_detail") or []:
        text += f"\n{error.get('exc_type')}: {error.get('exc_value')}"
    return text
