import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from tests.ports import free_port

from localcloud.home import Home
from localcloud.leftovers import end_leftovers, find_leftovers
from localcloud.process import MARK, Identity, Process, clean_environment, kill_all, listens, session_members

FAMILY = """
import os, sys, time
if os.fork() == 0:
    os.setpgid(0, 0)  # as Airflow's tasks do
    sys.argv[0] = "renamed"
time.sleep(60)
"""


def _start(tmp_path: Path, code: str, **environment: str) -> Process:
    return Process.start([sys.executable, "-c", code], environment, tmp_path, tmp_path / "log")


def _wait_for_members(process: Process, count: int) -> list[psutil.Process]:
    _wait_for(lambda: len(session_members(process.identity)) >= count)
    return session_members(process.identity)


def _wait_for(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_killed_leader_s_children_are_found_by_their_session_and_ended(tmp_path: Path) -> None:
    process = _start(tmp_path, FAMILY)
    members = _wait_for_members(process, 2)
    os.kill(process.identity.pid, 9)
    assert process.wait(5) == -9
    assert session_members(process.identity)
    process.end(grace_seconds=0)
    assert not any(member.is_running() and member.status() != psutil.STATUS_ZOMBIE for member in members)


def test_a_process_id_that_was_given_to_another_process_is_not_ours() -> None:
    me = Identity.of(os.getpid())
    earlier = Identity(me.pid, me.started - 100)
    assert me.is_alive()
    assert not earlier.is_alive()
    assert session_members(earlier) == []


def test_what_left_its_session_is_found_by_its_mark(tmp_path: Path) -> None:
    home = Home(tmp_path, tmp_path / "dags", Path(sys.executable))
    home.make_folders()
    process = _start(tmp_path, "import time; time.sleep(60)", **{MARK: str(home.state)})
    _wait_for(lambda: [found.pid for found in find_leftovers(home)] == [process.identity.pid])
    assert end_leftovers(home) == 1
    assert process.wait(5) == -9
    assert end_leftovers(home) == 0


def test_a_port_counts_only_when_the_process_itself_listens_on_it(tmp_path: Path) -> None:
    port = free_port()
    process = _start(tmp_path, f"import socket, time; s = socket.create_server(('127.0.0.1', {port})); time.sleep(60)")
    _wait_for(lambda: listens(process.identity, port))
    other = _start(tmp_path, "import time; time.sleep(60)")
    assert not listens(other.identity, port)
    kill_all([psutil.Process(process.identity.pid), psutil.Process(other.identity.pid)])
    assert (process.wait(5), other.wait(5)) == (-9, -9)


def test_nothing_of_the_person_s_own_airflow_leaks_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "CeleryExecutor")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/secret.json")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    environment = clean_environment()
    assert not {"AIRFLOW__CORE__EXECUTOR", "GOOGLE_APPLICATION_CREDENTIALS", "PYTHONPATH"} & set(environment)
    assert environment["NO_PROXY"] == "127.0.0.1,localhost"
