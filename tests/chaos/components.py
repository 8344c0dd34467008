"""What is killed: SIGKILL, nothing else, to the processes of one component."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import defaultdict

import psutil
from tests.chaos.airflow import Airflow
from tests.live.cloud import Cloud

COMPONENTS = ("task process", "worker", "scheduler", "triggerer", "api-server", "gcs", "vertex")

_SUPERVISED = {
    "scheduler": ("scheduler",),
    "triggerer": ("triggerer",),
    "api-server": ("api-server",),
    "gcs": ("storage", "storage-server"),  # the proxy, and the server behind it
    "vertex": ("vertex",),
}
HEALTHY_AGAIN = 120.0


class Components:
    """Kills components of one cloud; the supervisor starts them again."""

    def __init__(self, cloud: Cloud, airflow: Airflow) -> None:
        self._cloud = cloud
        self._airflow = airflow
        self._locks: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self.kills: dict[str, int] = defaultdict(int)
        """How often each component of the supervisor was killed: a stand-in forgets its holds."""

    def kill(self, component: str, dag: str, run: str, round_: int) -> str:
        """Kill a component while a run is stopped; returns what was killed, and waits until it is back.

        :param round_: 0, 1, ...: which of several processes of a component.
        """
        if component == "task process":
            return self._kill_task_process(dag, run)
        if component == "worker":
            return self._kill_worker(dag, run)
        names = _SUPERVISED[component]
        return self._kill_supervised(names[round_ % len(names)])

    def _kill_task_process(self, dag: str, run: str) -> str:
        """The process that runs the task; of a deferred one, the triggerer's runner."""
        found = self._task_process(dag, run)
        if found is not None:
            _kill(found.pid)
            return f"task process {found.pid}"
        with self._locks["triggerer"]:
            triggerer = self._pid("triggerer")
            runners = psutil.Process(triggerer).children()
            for runner in runners:
                _kill(runner.pid)
            self._until_back("triggerer", triggerer if runners else None)
            return f"trigger runner {[runner.pid for runner in runners]}"

    def _kill_worker(self, dag: str, run: str) -> str:
        """The executor's worker that supervises the task; of a deferred one, an idle worker."""
        found = self._task_process(dag, run)
        parent = found.parent() if found is not None else None
        if parent is None:
            idle = [process for process in _processes() if _title(process) == "airflow worker -- LocalExecutor: <idle>"]
            scheduler = psutil.Process(self._pid("scheduler")).pid
            parent = next((process for process in idle if process.ppid() == scheduler), None)
        if parent is None:
            return ""
        _kill(parent.pid)
        return f"worker {parent.pid}"

    def _kill_supervised(self, name: str) -> str:
        with self._locks[name]:
            pid = self._pid(name)
            self.kills[name] += 1
            _kill(pid)
            self._until_back(name, pid)
            return f"{name} {pid}"

    def _until_back(self, name: str, killed: int | None) -> None:
        deadline = time.monotonic() + HEALTHY_AGAIN
        while time.monotonic() < deadline:
            now = self._cloud.component(name)
            if now.status == "healthy" and now.process is not None and now.process.pid != killed:
                return
            time.sleep(0.3)
        raise TimeoutError(f"{name} was not healthy {HEALTHY_AGAIN:.0f} s after its kill")

    def _pid(self, name: str) -> int:
        identity = self._cloud.component(name).process
        assert identity is not None, name
        return identity.pid

    def _task_process(self, dag: str, run: str) -> psutil.Process | None:
        titles = {f"airflow worker -- {one}" for one in self._airflow.running(dag, run)}
        return next((process for process in _processes() if _title(process) in titles), None)


def _processes() -> list[psutil.Process]:
    return list(psutil.process_iter())


def _title(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline()).strip()
    except psutil.Error:
        return ""


def _kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
