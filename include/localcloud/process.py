"""Processes in sessions: started as the leader of an own session, found by it and ended with all of it.

Airflow's processes rename themselves, fork, and move their tasks to groups of their own; the session stays. The
children of PostgreSQL leave even the session, but end themselves when their parent is gone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

MARK = "LOCALCLOUD_INSTANCE"
"""Environment variable that everything below the supervisor inherits: the state folder of its local cloud."""

LOG_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class Identity:
    """A process that cannot be confused with a later one of the same id."""

    pid: int
    started: float
    """Seconds since the epoch, as the kernel counts them."""

    @classmethod
    def of(cls, pid: int) -> Identity:
        """Identify a running process; raises psutil.NoSuchProcess."""
        return cls(pid, psutil.Process(pid).create_time())

    def is_alive(self) -> bool:
        """Say whether this very process runs (a zombie does not)."""
        try:
            process = psutil.Process(self.pid)
            return abs(process.create_time() - self.started) < 0.05 and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    def was_replaced(self) -> bool:
        """Say whether the id belongs to another process now, so that its session is not ours."""
        return psutil.pid_exists(self.pid) and abs(Identity.of(self.pid).started - self.started) >= 0.05


class Process:
    """One started process, the leader of its session."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen
        self.identity = Identity.of(popen.pid)

    @classmethod
    def start(cls, command: Sequence[str], environment: Mapping[str, str], folder: Path, log: Path) -> Process:
        """Start `command` in `folder`, with `environment` over a clean one; output is appended to `log`."""
        if log.exists() and log.stat().st_size > LOG_BYTES:
            log.replace(log.with_suffix(".1.log"))
        with log.open("ab") as output:
            return cls(
                subprocess.Popen(
                    command,
                    env=clean_environment() | dict(environment),
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )

    def exit_code(self) -> int | None:
        """Return how it ended, None while it runs."""
        return self._popen.poll()

    def wait(self, seconds: float) -> int | None:
        """Wait for its end, at most `seconds`; return how it ended."""
        try:
            return self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def ask_to_end(self, with_signal: int = signal.SIGTERM) -> None:
        """Signal the leader alone: it knows best in which order its children end."""
        if self.exit_code() is None:
            self._popen.send_signal(with_signal)

    def end(self, grace_seconds: float) -> None:
        """Give the leader, which was asked to end, the grace; then kill all that is left of its session."""
        self.wait(grace_seconds)
        kill_all(session_members(self.identity))
        self.wait(5)


def clean_environment() -> dict[str, str]:
    """Return this process's environment without what would leak into Airflow or Google's clients."""
    prefixes = ("AIRFLOW", "_AIRFLOW", "PYTHONPATH", "GOOGLE_", "STORAGE_EMULATOR", "TRAINOPS_", "PG")
    folders = {"TRAINOPS_CONFIGS", "TRAINOPS_TRAINER"}  # a person's own, which the product is to use here, too
    kept = {key: value for key, value in os.environ.items() if key in folders or not key.startswith(prefixes)}
    loopback = "127.0.0.1,localhost"  # a proxy of the machine must not be asked for loopback
    return kept | {"NO_PROXY": loopback, "no_proxy": loopback, "PYTHONUNBUFFERED": "1"}


def session_members(leader: Identity) -> list[psutil.Process]:
    """Return the processes of the leader's session and their descendants, none when the id was given to another."""
    if leader.was_replaced():
        return []
    found: dict[int, psutil.Process] = {}
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == leader.pid:
                found |= {member.pid: member for member in [process, *process.children(recursive=True)]}
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return [process for process in found.values() if _runs(process)]


def marked_processes(state_folder: Path) -> list[psutil.Process]:
    """Return all processes that inherited the mark of the local cloud at `state_folder`, whatever their session."""
    wanted, found = f"{MARK}={state_folder}".encode(), []
    for process in psutil.process_iter():
        try:
            environment = Path(f"/proc/{process.pid}/environ").read_bytes()
        except OSError:
            continue
        if wanted in environment.split(b"\0") and process.pid != os.getpid():
            found.append(process)
    return found


def kill_all(processes: Iterable[psutil.Process], wait_seconds: float = 5.0) -> None:
    """Kill processes and wait until they are gone."""
    doomed = list(processes)
    for process in doomed:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    deadline = time.monotonic() + wait_seconds
    while time.monotonic() < deadline and any(_runs(process) for process in doomed):
        time.sleep(0.02)


def listens(leader: Identity, port: int) -> bool:
    """Say whether a process of the leader's session listens on `port`, rather than a left-over of an earlier one."""
    for process in session_members(leader):
        try:
            connections = process.net_connections(kind="tcp")
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        if any(one.status == psutil.CONN_LISTEN and one.laddr.port == port for one in connections):
            return True
    return False


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
