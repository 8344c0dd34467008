"""What is killed: SIGKILL, nothing else, to the processes of one component."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field

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
HEALTHY_AGAIN = 180.0

GATHER_SECONDS = 10.0
"""How long a kill of a component that all runs share waits for others that have come to the interval they wait for."""


@dataclass
class Party:
    """Runs that stand in their intervals, and wait for the same kill."""

    killed: str = ""
    done: threading.Event = field(default_factory=threading.Event)


class Components:
    """Kills components of one cloud; the supervisor starts them again."""

    def __init__(self, cloud: Cloud, airflow: Airflow) -> None:
        self._cloud = cloud
        self._airflow = airflow
        self._locks: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self._parties: dict[str, Party] = {}
        self._joining = threading.Lock()
        self._killed: dict[str, int] = {}

    def kill(self, component: str, dag: str, run: str, round_: int) -> str:
        """Kill a component while a run is stopped, and return what was killed; empty when there was nothing to kill.

        :param round_: 0, 1, ...: which of several processes of a component.
        """
        if component == "task process":
            return self._kill_task_process(dag, run)
        if component == "worker":
            return self._kill_worker(dag, run)
        names = _SUPERVISED[component]
        return self._kill_shared(names[round_ % len(names)])

    def until_back(self) -> None:
        """Wait until every component is healthy."""
        deadline = time.monotonic() + HEALTHY_AGAIN
        while not all(
            self._cloud.component(name).status == "healthy" for names in _SUPERVISED.values() for name in names
        ):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not everything was healthy {HEALTHY_AGAIN:.0f} s after a kill")
            time.sleep(0.5)

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
            self._until_another("triggerer", triggerer if runners else None)
            return f"trigger runner {runners[0].pid}" if runners else ""

    def _kill_worker(self, dag: str, run: str) -> str:
        """The executor's worker that supervises the task's process."""
        found = self._task_process(dag, run)
        worker = found.parent() if found is not None else None
        if worker is None:
            return ""
        _kill(worker.pid)
        return f"worker {worker.pid}"

    def _kill_shared(self, name: str) -> str:
        """Kill once for all runs that have come to their intervals; the first of them does it."""
        with self._joining:
            party = self._parties.get(name)
            first = party is None
            party = self._parties.setdefault(name, Party())
        if not first:
            party.done.wait()
            return party.killed
        try:
            with self._locks[name]:
                time.sleep(GATHER_SECONDS)
                self._until_another(name, self._killed.get(name))
                with self._joining:
                    del self._parties[name]
                pid = self._killed[name] = self._pid(name)
                _kill(pid)
                party.killed = f"{name} {pid}"
        finally:  # also when the component does not come back: else all who joined would wait for ever
            with self._joining:
                if self._parties.get(name) is party:
                    del self._parties[name]
            party.done.set()
        return party.killed

    def _until_another(self, name: str, killed: int | None) -> None:
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
