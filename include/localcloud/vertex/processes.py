"""Processes of replicas, each in a folder of its own: started, observed and stopped through that folder alone.

The folder is all that is needed to find a process again, so a server that was killed and started anew goes on where it
was.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from localcloud.vertex import wrapper

_started: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True)
class Observation:
    """What a folder says about its process.

    `absent`: never started; `lost`: its wrapper was killed and took the exit code along. `code` is negative for a
    signal; `stopped`: somebody had asked for the end; `time` in seconds since 1970, known of `exited` only.
    """

    kind: Literal["absent", "running", "exited", "lost"]
    code: int = 0
    time: float = 0.0
    stopped: bool = False


def launch(folder: Path, argv: Sequence[str], env: dict[str, str], cwd: Path, grace: float) -> int:
    """Start a process in the fresh `folder` and return the pid of its wrapper.

    :param grace: seconds between SIGTERM and SIGKILL once `stop` was called.
    """
    folder.mkdir(parents=True)
    cwd.mkdir(parents=True, exist_ok=True)
    spec = {"argv": list(argv), "env": env, "cwd": str(cwd), "grace": grace}
    (folder / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with (folder / "wrapper.err").open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", wrapper.__file__, str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                pass_fds=(lock,),
                start_new_session=True,
                cwd="/",
            )
    finally:
        os.close(lock)
    _started.append(process)
    return process.pid


def observe(folder: Path) -> Observation:
    """Return how the process of `folder` is."""
    reap()
    if not (folder / "lock").exists():
        return Observation("absent")
    # The lock is asked first: the wrapper frees it only after it wrote the exit code.
    running = _is_locked(folder / "lock")
    ended = _read(folder / "exit.json")
    if ended is not None:
        return Observation("exited", ended["code"], ended["time"], ended["stopped"])
    if running:
        return Observation("running")
    return Observation("lost")


def wrapper_pid(folder: Path) -> int | None:
    """Return the pid of the wrapper in `folder`; None when it has not got as far as starting the replica."""
    process = _read(folder / "process.json")
    return None if process is None else int(process["pid"])


def wait_for_group(folder: Path, seconds: float = 10.0) -> None:
    """Wait until the wrapper in `folder` has started the replica, which takes it a moment, or has ended."""
    deadline = time.monotonic() + seconds
    while wrapper_pid(folder) is None and observe(folder).kind == "running" and time.monotonic() < deadline:
        time.sleep(0.02)


def stop(folder: Path) -> None:
    """Ask the process to end: SIGTERM, then SIGKILL after its grace. Nothing happens when it has ended."""
    process = _read(folder / "process.json")
    if process is not None and _is_locked(folder / "lock"):
        os.kill(process["pid"], signal.SIGTERM)


def kill(folder: Path, number: int = signal.SIGKILL) -> bool:
    """Send a signal to the replica's whole process group; return whether there was one."""
    process = _read(folder / "process.json")
    if process is None or wrapper.start_ticks(process["child"]) != process["child_started"]:
        return False
    try:
        os.killpg(process["child"], number)
    except ProcessLookupError:
        return False
    return True


def stop_survivors(state: Path, seconds: float = 5.0) -> int:
    """End every replica under the state folder of a server that is gone, and return how many there were.

    :param seconds: how long to wait before SIGKILL.
    """
    folders = [path.parent for path in state.glob("jobs/*/*/*/process.json") if _is_locked(path.parent / "lock")]
    for folder in folders:
        stop(folder)
    deadline = time.monotonic() + seconds
    while any(_is_locked(folder / "lock") for folder in folders):
        if time.monotonic() > deadline:
            for folder in folders:
                kill(folder)
        if time.monotonic() > deadline + 5:
            break
        time.sleep(0.05)
    reap()
    return len(folders)


def reap() -> None:
    """Collect the wrappers that have ended, so that they do not stay as zombies."""
    _started[:] = [process for process in _started if process.poll() is None]


def _is_locked(path: Path) -> bool:
    handle = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _read(path: Path) -> dict[str, Any] | None:
    try:
        value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return value
