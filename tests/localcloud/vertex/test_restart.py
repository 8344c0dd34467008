"""The server is killed or stopped while jobs run, and started again on the same state."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from localcloud.vertex.processes import stop_survivors

if TYPE_CHECKING:
    from tests.localcloud.vertex.conftest import StandIn

Job = Callable[..., dict[str, Any]]


def _wait_until_file(path: Path) -> None:
    deadline = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _wait_for_change(vertex: StandIn, name: str, states: int) -> None:
    deadline = time.monotonic() + 120
    while len(vertex.states(name)) == states:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_killed_server_finds_its_replicas_again(
    own: Callable[..., StandIn], container_job: Job, tmp_path: Path
) -> None:
    vertex = own()
    go, began = tmp_path / "go", tmp_path / "began"
    wait = f"open({str(began)!r}, 'w')\nimport os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.05)\n"
    finishes = vertex.create(container_job(wait + "print('end')"))
    fails_meanwhile = vertex.create(container_job("import time, sys; time.sleep(1); print('bad'); sys.exit(7)"))
    vertex.wait(finishes, "RUNNING")
    vertex.wait(fails_meanwhile, "RUNNING")
    _wait_until_file(began)
    vertex.kill()
    time.sleep(1.5)
    vertex.start()
    assert vertex.get(finishes)["state"] == "JOB_STATE_RUNNING"
    failed = vertex.wait(fails_meanwhile)
    assert "non-zero status of 7" in failed["error"]["message"]
    assert "bad" in failed["error"]["message"]
    go.touch()
    assert vertex.wait(finishes)["state"] == "JOB_STATE_SUCCEEDED"
    assert vertex.lines(finishes) == ["end"]
    assert len(vertex.journal("replica_started", finishes)) == 1


def test_a_cancel_goes_on_after_a_kill(own: Callable[..., StandIn], container_job: Job) -> None:
    vertex = own()
    name = vertex.create(container_job("import time; time.sleep(60)"))
    vertex.wait(name, "RUNNING")
    vertex.fault(kind="slow_cancel", seconds=1)
    vertex.post(f"/v1/{name}:cancel", {})
    vertex.kill()
    vertex.start()
    assert vertex.wait(name)["state"] == "JOB_STATE_CANCELLED"
    assert vertex.states(name) == ["QUEUED", "PENDING", "RUNNING", "CANCELLING", "CANCELLED"]


def test_a_server_that_is_stopped_ends_its_replicas_and_starts_them_again_later(
    own: Callable[..., StandIn], container_job: Job, tmp_path: Path
) -> None:
    vertex = own()
    marker, began = tmp_path / "starts", tmp_path / "began"
    count = f"f = open({str(marker)!r}, 'a+'); f.write('x'); f.seek(0); starts = len(f.read())"
    code = f"import time; {count}; f.close(); open({str(began)!r}, 'w').close(); time.sleep(0 if starts > 1 else 60)"
    name = vertex.create(container_job(code))
    vertex.wait(name, "RUNNING")
    _wait_until_file(began)
    pid = vertex.journal("replica_started", name)[0]["pid"]
    vertex.terminate()
    assert vertex.process.returncode == 0
    assert not psutil.pid_exists(pid)
    vertex.start()
    assert vertex.wait(name)["state"] == "JOB_STATE_SUCCEEDED"
    assert vertex.states(name) == ["QUEUED", "PENDING", "RUNNING", "PENDING", "RUNNING", "SUCCEEDED"]


def test_a_lost_wrapper_is_an_internal_error_and_restarts_the_job(
    own: Callable[..., StandIn], container_job: Job
) -> None:
    vertex = own()
    name = vertex.create(container_job("import time; time.sleep(60)"))
    for attempt in (1, 2, 3):
        vertex.wait(name, "RUNNING")
        started = vertex.journal("replica_started", name)[-1]
        assert started["attempt"] == attempt
        psutil.Process(started["pid"]).send_signal(signal.SIGKILL)
        _wait_for_change(vertex, name, 1 + 2 * attempt)
    job = vertex.wait(name)
    assert job["error"] == {"code": 13, "message": "Internal error occurred for the current attempt."}


def test_replicas_of_a_dead_server_can_be_ended_without_it(own: Callable[..., StandIn], container_job: Job) -> None:
    vertex = own()
    name = vertex.create(container_job("import time; print('up', flush=True); time.sleep(60)"))
    vertex.wait(name, "RUNNING")
    while not vertex.lines(name):
        time.sleep(0.05)
    vertex.kill()
    assert stop_survivors(vertex.state) == 1
    assert stop_survivors(vertex.state) == 0


def test_two_servers_do_not_share_a_state_folder(own: Callable[..., StandIn]) -> None:
    vertex = own()
    import subprocess

    second = subprocess.run(vertex._command, capture_output=True, text=True, env={"PYTHONPATH": "include"}, check=False)
    assert second.returncode == 1
    assert "is in use by another stand-in" in second.stderr
