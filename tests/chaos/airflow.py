"""Airflow's REST API as a person and a test use it; it is asked again while the API server is away."""

from __future__ import annotations

import threading
import time
from typing import Any

import httpx
from tests.live.cloud import Cloud

from localcloud.airflow_api import AirflowApi

ENDS = frozenset({"success", "failed"})
LOOK_SECONDS = 2.0
"""One list serves all lanes; the API server has enough to do."""


class Airflow(AirflowApi):
    """Starts runs, marks tasks, tells states."""

    def __init__(self, url: str, user: str, password: str) -> None:
        super().__init__(url, user, password)
        self._lock = threading.Lock()
        self._states: dict[tuple[str, str], str] = {}
        self._looked: dict[str, float] = {}

    @classmethod
    def of(cls, cloud: Cloud) -> Airflow:
        """The Airflow of a cloud."""
        at = cloud.endpoints
        return cls(at["airflow"], at["airflow_user"], at["airflow_password"])

    def start(self, dag: str, run: str, conf: dict[str, Any]) -> None:
        """Trigger a run; one that is there already, since a reply was lost, is the one that was asked for."""
        body = {"dag_run_id": run, "conf": conf, "logical_date": None}
        answer = self._ask("POST", f"/api/v2/dags/{dag}/dagRuns", json=body)
        if answer.status_code != httpx.codes.CONFLICT:
            answer.raise_for_status()

    def mark(self, dag: str, run: str, task: str, state: str) -> None:
        """Mark a task failed or success, as a person does."""
        path = f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}"
        self._ask("PATCH", path, json={"new_state": state}).raise_for_status()

    def clear(self, dag: str, run: str, *tasks: str) -> None:
        """Clear tasks, or the whole run when none are named, as a person does."""
        order: dict[str, Any] = {"dry_run": False, "only_failed": False, "dag_run_id": run}
        if tasks:
            self._ask(
                "POST", f"/api/v2/dags/{dag}/clearTaskInstances", json=order | {"task_ids": tasks}
            ).raise_for_status()
        else:
            self._ask("POST", f"/api/v2/dags/{dag}/dagRuns/{run}/clear", json={"dry_run": False}).raise_for_status()
        with self._lock:
            self._states.pop((dag, run), None)

    def running(self, dag: str, run: str) -> list[str]:
        """Ids of the task instances that run now."""
        found = self._get(f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances")["task_instances"]
        return [one["id"] for one in found if one["state"] == "running"]

    def state(self, dag: str, run: str, task: str) -> str:
        """State of a task."""
        return next((one.state for one in self.task_states(dag, run) if one.name == task), "none")

    def has_ended(self, dag: str, run: str) -> bool:
        """Whether a run has ended, as of a moment ago."""
        with self._lock:
            if self._states.get((dag, run)) not in ENDS and time.monotonic() > self._looked.get(dag, 0) + LOOK_SECONDS:
                runs = self._get(f"/api/v2/dags/{dag}/dagRuns?order_by=-run_after&limit=100")["dag_runs"]
                self._states.update({(dag, one["dag_run_id"]): one["state"] for one in runs})
                self._looked[dag] = time.monotonic()
            return self._states.get((dag, run)) in ENDS
