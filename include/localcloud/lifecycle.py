"""Up and down, from the outside: starts the supervisor as a daemon, waits for it, ends it and all that it runs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable

from localcloud.errors import LocalCloudError
from localcloud.home import INCLUDE, Home
from localcloud.leftovers import end_leftovers
from localcloud.process import clean_environment
from localcloud.state import CloudState, ComponentState, Status

READY_SECONDS = 600.0
"""Longest wait for everything to be healthy."""
DOWN_SECONDS = 60.0
"""Longest wait for the supervisor to end its components before they are killed."""
HOPELESS_RESTARTS = 5
"""Deaths after which a component that has never been healthy is given up by `up`."""

Watch = Callable[[CloudState], None]


def current_state(home: Home) -> CloudState | None:
    """Return what the living supervisor tells; None when there is none."""
    state = CloudState.load(home.state_file)
    return state if state is not None and state.runs() else None


def start_supervisor(home: Home) -> None:
    """Start the supervisor in a session of its own, unless one runs; it outlives this process."""
    if current_state(home) is not None:
        return
    home.check()
    home.make_folders()
    environment = clean_environment() | {
        "PYTHONPATH": str(INCLUDE),
        "LOCALCLOUD_ROOT": str(home.root),
        "LOCALCLOUD_DAGS": str(home.dags),
        "LOCALCLOUD_TRAINER_PYTHON": str(home.trainer_python),
    }
    with (home.logs / "supervisor.log").open("ab") as log:
        subprocess.Popen(
            [sys.executable, "-m", "localcloud", "up", "--foreground"],
            env=environment, cwd=home.root, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip


def wait_until_ready(home: Home, watch: Watch) -> CloudState:
    """Wait until everything has been healthy, telling `watch` how it goes; raises LocalCloudError when it fails."""
    deadline = time.monotonic() + READY_SECONDS
    silent_until = time.monotonic() + 20
    while time.monotonic() < deadline:
        state = current_state(home)
        if state is None and time.monotonic() > silent_until:
            raise LocalCloudError(f"the supervisor ended; see {home.logs / 'supervisor.log'}")
        if state is not None:
            watch(state)
            if state.ready:
                return state
            _raise_when_hopeless(home, state.components)
        time.sleep(0.2)
    raise LocalCloudError(f"not healthy after {READY_SECONDS:.0f} s; see {home.logs}")


def stop(home: Home, *, purge: bool = False) -> int:
    """End the supervisor and all that it runs, also when it is dead itself; return how many had to be killed."""
    state = current_state(home)
    if state is not None:
        os.kill(state.supervisor.pid, signal.SIGTERM)
        _wait_for_end(state)
    killed = end_leftovers(home)
    for path in (home.endpoints_file, home.state_file, home.environment_file):
        path.unlink(missing_ok=True)
    if purge:
        shutil.rmtree(home.state, ignore_errors=True)
    return killed


def _wait_for_end(state: CloudState) -> None:
    deadline = time.monotonic() + DOWN_SECONDS
    while state.runs():
        if time.monotonic() > deadline:
            os.kill(state.supervisor.pid, signal.SIGKILL)
            return
        time.sleep(0.1)


def _raise_when_hopeless(home: Home, components: list[ComponentState]) -> None:
    for one in components:
        if one.took is None and one.status is Status.DEAD and one.restarts >= HOPELESS_RESTARTS:
            tail = "\n".join(_last_lines(home, one.name))
            raise LocalCloudError(f"{one.name} does not start: {one.error}\n{tail}")


def _last_lines(home: Home, name: str, count: int = 15) -> list[str]:
    path = home.logs / f"{name}.log"
    return path.read_text(errors="replace").splitlines()[-count:] if path.exists() else []
