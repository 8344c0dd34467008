"""The supervisor: one loop that keeps all components running until it is told to end."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from types import FrameType

from localcloud.airflow_environment import USER
from localcloud.catalogue import Ports, build_catalogue, choose_ports
from localcloud.errors import LocalCloudError
from localcloud.files import write_json
from localcloud.home import Home
from localcloud.keeper import Keeper
from localcloud.leftovers import end_leftovers
from localcloud.ports import HOST, Reservations
from localcloud.process import Identity
from localcloud.secrets_file import Secrets, load_secrets
from localcloud.state import CloudState, take_lock

log = logging.getLogger("localcloud")

TICK_SECONDS = 0.25
_PR_SET_CHILD_SUBREAPER = 36


class Supervisor:
    """Keeps the components of one local cloud; there is one per state folder, by a lock."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._stop = False
        self._keepers: list[Keeper] = []

    def run(self) -> None:
        """Supervise until TERM or INT; raises LocalCloudError when another one does already."""
        self._home.make_folders()
        lock = take_lock(self._home.state / "lock")
        if lock is None:
            raise LocalCloudError("another supervisor runs here; `python -m localcloud status` shows it")
        with lock:
            end_leftovers(self._home)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._on_signal)
            _adopt_orphans()
            self._supervise()

    def _supervise(self) -> None:
        reservations, secrets = Reservations(), load_secrets(self._home)
        checks = ThreadPoolExecutor(max_workers=10, thread_name_prefix="health")
        ports = choose_ports(self._home, reservations)
        self._keepers = [
            Keeper(component, self._home, self._is_satisfied, checks)
            for component in build_catalogue(self._home, ports, secrets)
        ]
        state = CloudState(Identity.of(os.getpid()), time.time(), components=[keeper.state for keeper in self._keepers])
        state.save(self._home.state_file)
        _publish(self._home, ports, secrets)
        try:
            while not self._stop:
                self._tick(state)
                time.sleep(TICK_SECONDS)
        finally:
            state.stopping = True
            state.save(self._home.state_file)
            checks.shutdown(wait=False, cancel_futures=True)
            self._end_all()
            end_leftovers(self._home)
            reservations.release()

    def _tick(self, state: CloudState) -> None:
        changed = [keeper.tick(time.time()) for keeper in self._keepers]
        _reap_orphans({keeper.pid for keeper in self._keepers})
        if not state.ready and all(keeper.is_satisfied() for keeper in self._keepers):
            state.ready = True
            log.info("everything is healthy, %.1f s after the start", time.time() - state.started)
            changed.append(True)
        if any(changed):
            state.save(self._home.state_file)

    def _is_satisfied(self, name: str) -> bool:
        return any(keeper.is_satisfied() for keeper in self._keepers if keeper.component.name == name)

    def _end_all(self) -> None:
        """End stage by stage: who uses a service ends before it."""
        keepers = sorted(self._keepers, key=lambda keeper: keeper.component.stop_stage)
        for _, group in groupby(keepers, key=lambda keeper: keeper.component.stop_stage):
            stage = list(group)
            for keeper in stage:
                keeper.ask_to_end()
            for keeper in stage:
                keeper.end()

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        log.info("told to end by signal %d", number)
        self._stop = True


def _publish(home: Home, ports: Ports, secrets: Secrets) -> None:
    """Write the endpoints file, the contract with the product."""
    vertex = f"http://{HOST}:{ports.vertex}"
    endpoints = {
        "vertex": vertex,
        "storage": f"http://{HOST}:{ports.storage}",
        "logging": vertex,
        "airflow": f"http://{HOST}:{ports.airflow}",
        "airflow_user": USER,
        "airflow_password": secrets.airflow_password,
        "pid": os.getpid(),
    }
    write_json(home.endpoints_file, endpoints)


def _adopt_orphans() -> None:
    """Become the parent of what a killed component leaves behind, rather than process 1, which may not reap it."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _reap_orphans(ours: set[int | None]) -> None:
    """Reap adopted children that have ended; the components' own ends are read by their keepers."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid in ours:
            return
        os.waitpid(ended.si_pid, 0)
