"""The process around a replica: run as a file by the interpreter alone, so it imports the standard library only.

It starts the replica in a process group of its own, writes each line of output with its time, hands a SIGTERM on and
follows it with SIGKILL after the grace, and leaves the exit code in a file. It outlives the server, so nothing is lost
when the server is killed. The server locks the folder's file `lock` and passes the lock on at the start: while it is
held, this process lives.
"""

import ctypes
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LONGEST_LINE = 64 * 1024
_TAIL_SECONDS = 1.0


def main(folder: Path) -> None:
    """Run what `spec.json` in `folder` says to its end and write `exit.json`."""
    spec = json.loads((folder / "spec.json").read_text(encoding="utf-8"))
    stops: list[float] = []
    signal.signal(signal.SIGTERM, lambda *_: stops.append(time.monotonic()))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with (folder / "log.jsonl").open("ab", buffering=0) as log:
        try:
            child = _start(spec, libc)
        except OSError as error:
            _write_line(log, "err", f"cannot start {spec['argv'][0]}: {error}")
            code = 127
        else:
            process = {"pid": os.getpid(), "child": child.pid, "child_started": start_ticks(child.pid)}
            _write_json(folder / "process.json", process)
            code = _follow(child, log, stops, spec["grace"])
            _kill_descendants()
    _write_json(folder / "exit.json", {"code": code, "time": time.time(), "stopped": bool(stops)})


def start_ticks(pid: int) -> int | None:
    """Return when process `pid` started, in clock ticks since boot; None when there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[19])


def _start(spec: dict[str, Any], libc: ctypes.CDLL) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        spec["argv"],
        env=spec["env"],
        cwd=spec["cwd"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0),
    )


def _follow(child: "subprocess.Popen[bytes]", log: IO[bytes], stops: list[float], grace: float) -> int:
    selector = selectors.DefaultSelector()
    buffers: dict[str, bytes] = {"out": b"", "err": b""}
    for name, stream in (("out", child.stdout), ("err", child.stderr)):
        assert stream is not None
        selector.register(stream, selectors.EVENT_READ, name)
    signalled, ended = 0, 0.0
    while selector.get_map() and not (ended and time.monotonic() > ended + _TAIL_SECONDS):
        for key, _ in selector.select(0.1):
            _read(selector, key, buffers, log)
        signalled = _pass_on_stop(child, stops, grace, signalled)
        if not ended and child.poll() is not None:
            ended = time.monotonic()
            # What the replica left running would hold the pipes open.
            _kill_descendants()
    while child.poll() is None:
        signalled = _pass_on_stop(child, stops, grace, signalled)
        time.sleep(0.05)
    for name, rest in buffers.items():
        _write_line(log, name, rest.decode(errors="replace"))
    return int(child.returncode)


def _read(
    selector: selectors.BaseSelector, key: selectors.SelectorKey, buffers: dict[str, bytes], log: IO[bytes]
) -> None:
    data = os.read(key.fd, 65536)
    if not data:
        selector.unregister(key.fileobj)
        return
    *lines, rest = (buffers[key.data] + data).split(b"\n")
    if len(rest) > _LONGEST_LINE:
        lines, rest = [*lines, rest], b""
    buffers[key.data] = rest
    for line in lines:
        _write_line(log, key.data, line.decode(errors="replace"))


def _pass_on_stop(child: "subprocess.Popen[bytes]", stops: list[float], grace: float, signalled: int) -> int:
    """Return how far stopping has come: 0 not asked, 1 SIGTERM sent, 2 SIGKILL sent."""
    if not stops or child.poll() is not None:
        return signalled
    if signalled == 0:
        _signal_group(child.pid, signal.SIGTERM)
        return 1
    if signalled == 1 and time.monotonic() >= stops[0] + grace:
        _signal_group(child.pid, signal.SIGKILL)
        return 2
    return signalled


def _signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


def _kill_descendants() -> None:
    # Orphans come to this process (subreaper), even those that left the group: a container ends with all of them.
    while True:
        children = _children()
        if not children:
            return
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                continue


def _children() -> list[int]:
    path = Path(f"/proc/self/task/{os.getpid()}/children")
    return [int(pid) for pid in path.read_text(encoding="ascii").split()]


def _write_line(log: IO[bytes], stream: str, text: str) -> None:
    text = text.rstrip("\r\n").rpartition("\r")[2]
    if text.strip():
        log.write(json.dumps({"t": time.time(), "s": stream, "m": text}).encode() + b"\n")


def _write_json(path: Path, value: dict[str, Any]) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(value), encoding="utf-8")
    draft.replace(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
