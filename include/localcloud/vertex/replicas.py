"""Starts the processes of a job and reads how they are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from localcloud.ports import Reservations
from localcloud.vertex import clock, installation, private_python, processes
from localcloud.vertex.environment import base_environment, replica_environment
from localcloud.vertex.journal import Journal
from localcloud.vertex.options import Options
from localcloud.vertex.processes import Observation
from localcloud.vertex.records import JobRecord, Process, replica_count, task_of
from localcloud.vertex.store import Store

INSTALL = "install"
"""Name of the process that installs packages."""


class Replicas:
    """The processes of all jobs. Starts are saved before they happen, so that none is forgotten."""

    def __init__(self, options: Options, store: Store, journal: Journal) -> None:
        self._options = options
        self._store = store
        self._journal = journal
        self._reserved = {record.job_id: _hold_again(record) for record in store.live()}

    def needs_install(self, record: JobRecord) -> bool:
        """Return whether the job has packages that are not being installed yet."""
        return bool(self._package_uris(record)) and record.install.starts == 0

    def install(self, record: JobRecord) -> None:
        """Start the installation of the job's packages."""
        record.install.attempt = record.attempt
        record.install.starts += 1
        record.install.exit_code = None
        self._store.save(record)
        python = str(self._options.python)
        script = [sys.executable, "-I", installation.__file__, self._options.storage_endpoint, python]
        argv = [*script, str(self._install_folder(record)), *self._package_uris(record)]
        self._launch(record, INSTALL, argv, base_environment(self._options, self._home(record)))

    def assign_ports(self, record: JobRecord) -> None:
        """Choose the addresses of a new attempt."""
        live = {other.job_id for other in self._store.live()}
        for job_id in [job_id for job_id in self._reserved if job_id not in live or job_id == record.job_id]:
            self._reserved.pop(job_id).release()
        reserved = self._reserved[record.job_id] = Reservations()
        record.ports = {
            name: [reserved.choose() for _ in range(replica_count(pool))] for name, pool in record.pools.items()
        }

    def start(self, record: JobRecord, name: str) -> None:
        """Start a replica, for the first time or again."""
        process = record.replicas.setdefault(name, Process())
        process.attempt = record.attempt
        process.starts += 1
        process.exit_code = None
        self._store.save(record)
        packaged = "packageUris" in task_of(record.pools[_pool(name)])
        site = self._install_folder(record) / "site" if packaged else None
        env = replica_environment(record, name, self._options, self._home(record), site)
        self._launch(record, name, self._argv(record, name), env)

    def running(self, record: JobRecord) -> list[str]:
        """Return the names of the processes that have not ended, after noting the ends of others."""
        return [name for name in _names(record) if self.observe(record, name).kind == "running"]

    def observe(self, record: JobRecord, name: str) -> Observation:
        """Return how the newest start of a process is, and note its end the first time that it is seen."""
        process = _process(record, name)
        observation = processes.observe(self.folder(record, name))
        if process.announced < process.starts:
            self._announce_late(record, name)
        if observation.kind in {"exited", "lost"} and process.exit_code is None:
            self._note_end(record, name, observation)
        return observation

    def stop(self, record: JobRecord, name: str, *, kill: bool = False) -> None:
        """Signal a process: SIGTERM and its grace, or SIGKILL at once."""
        folder = self.folder(record, name)
        if kill:
            processes.kill(folder)
        else:
            processes.stop(folder)

    def send_signal(self, record: JobRecord, name: str, number: int) -> bool:
        """Send any signal to a replica's process group; return whether there was one."""
        folder = self.folder(record, name)
        # A replica counts as running from its start on, a moment before its process group is there.
        processes.wait_for_group(folder)
        return processes.kill(folder, number)

    def folder(self, record: JobRecord, name: str) -> Path:
        """Folder of the newest start of a process."""
        return self._store.folder(record) / name / f"{_process(record, name).starts:03d}"

    def _launch(self, record: JobRecord, name: str, argv: list[str], env: dict[str, str]) -> None:
        folder = self.folder(record, name)
        pid = processes.launch(folder, argv, env, folder / "work", self._options.grace)
        self._announce(record, name, pid)

    def _announce_late(self, record: JobRecord, name: str) -> None:
        # The server was killed between the start and the journal.
        pid = processes.wrapper_pid(self.folder(record, name))
        if pid is not None:
            self._announce(record, name, pid)

    def _announce(self, record: JobRecord, name: str, pid: int) -> None:
        process = _process(record, name)
        fields: dict[str, Any] = {"job": record.job_id, "replica": name, "attempt": process.attempt}
        self._journal.add("replica_started", **fields, start=process.starts, pid=pid)
        process.announced = process.starts
        self._store.save(record)

    def _note_end(self, record: JobRecord, name: str, observation: Observation) -> None:
        process = _process(record, name)
        process.exit_code = observation.code
        if observation.kind == "lost":
            # The replica died with its wrapper; what it had started may not have.
            processes.kill(self.folder(record, name))
        fields: dict[str, Any] = {"job": record.job_id, "replica": name, "attempt": process.attempt}
        fields |= {"start": process.starts, "how": observation.kind, "exit_code": observation.code}
        time = clock.from_seconds(observation.time) if observation.time else None
        self._journal.add("replica_ended", time=time, **fields)
        self._store.save(record)

    def _argv(self, record: JobRecord, name: str) -> list[str]:
        task = task_of(record.pools[_pool(name)])
        arguments = task.get("args", [])
        python = str(self._options.python)
        if "pythonModule" in task:
            return [python, "-m", task["pythonModule"], *arguments]
        private = self.folder(record, name) / "python"
        return [python, "-I", private_python.__file__, str(private), *task["command"], *arguments]

    def _package_uris(self, record: JobRecord) -> list[str]:
        # Pools name the same packages as a rule; each is installed once for all of them.
        uris = [uri for pool in record.pools.values() for uri in task_of(pool).get("packageUris", [])]
        return list(dict.fromkeys(uris))

    def _install_folder(self, record: JobRecord) -> Path:
        return self._store.folder(record) / INSTALL / f"{record.install.starts:03d}" / "work"

    def _home(self, record: JobRecord) -> Path:
        home = self._store.folder(record) / "home"
        home.mkdir(exist_ok=True)
        return home


def _hold_again(record: JobRecord) -> Reservations:
    """Hold the addresses that the server gave to a job before it was started again."""
    reserved = Reservations()
    for port in (port for ports in record.ports.values() for port in ports):
        reserved.hold(port)
    return reserved


def _names(record: JobRecord) -> list[str]:
    installing = [INSTALL] if record.install.starts else []
    return installing + list(record.replicas)


def _pool(replica: str) -> str:
    return replica.rpartition("-")[0]


def _process(record: JobRecord, name: str) -> Process:
    return record.install if name == INSTALL else record.replicas[name]
