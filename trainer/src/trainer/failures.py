"""What ends a program of the trainer: one line that says what to do, and the exit code for whoever started it.

0: done, or preempted with a marker. 1: another try may help. 2: another try never helps.
An error that is none of these is a fault of the trainer: it keeps its traceback, and Python's exit code 1.
"""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Callable
from typing import Any

from trainer.errors import TrainerError

_SMALLER = (
    "the job does not fit; lower trainer.batch_size or trainer.model.context, choose a smaller model, or more replicas "
    "or machines with more memory. Another try would need as much"
)
_NO_MEMORY = re.compile(
    r"DefaultCPUAllocator|CUDA error: out of memory|CU[A-Z]+_STATUS_ALLOC_FAILED|Cuda failure.*out of memory"
)
"""How errors of torch say it that have no kind of their own: CPUs, CUDA itself, its libraries (cuBLAS...) and NCCL."""
_LASTING = {
    errno.ENOENT,
    errno.EACCES,
    errno.EPERM,
    errno.EISDIR,
    errno.ENOTDIR,
    errno.EROFS,
    errno.ENAMETOOLONG,
    errno.ELOOP,
}
"""Errors of the system about the place itself; others (a full disk, a connection) another try may not see."""


def guarded(program: Callable[[], int]) -> int:
    """Run `program`; turn a known error into one line on stderr and an exit code."""
    try:
        return program()
    except (Exception, KeyboardInterrupt) as error:
        told = explain(error)
        if told is None:
            raise
        # One line, whatever the libraries wrote: whoever reads a log looks at lines.
        print(f"error: {' '.join(line.strip() for line in told[0].splitlines())}", file=sys.stderr, flush=True)
        return told[1]


def explain(error: BaseException) -> tuple[str, int] | None:
    """Return what to tell of an error, and the exit code; None for a fault of the trainer."""
    if isinstance(error, TrainerError):
        return str(error), error.exit_code
    if out_of_memory(error):
        return f"out of memory: {_first_line(error)}: {_SMALLER}", 2
    if isinstance(error, KeyboardInterrupt):
        return "interrupted; the same command goes on from the newest checkpoint", 1
    if isinstance(error, OSError):
        return _system_error(error)
    if _of_torch(error, "AcceleratorError"):
        return f"the GPU failed: {_first_line(error)}; another try may get another one", 1
    return None


def reason_of(error: BaseException) -> str:
    """One line about an error that is told and ends nothing."""
    told = explain(error)
    line = " ".join((told[0] if told else str(error)).split()) or "no reason given"
    return line[:300] if told else f"{type(error).__name__}: {line[:300]}"


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory, of a GPU or of the machine, ran out."""
    if isinstance(error, MemoryError) or _of_torch(error, "OutOfMemoryError"):
        return True
    return isinstance(error, RuntimeError) and _NO_MEMORY.search(str(error)) is not None


def _of_torch(error: BaseException, name: str) -> bool:
    # torch takes seconds to import, and an error of torch can only come when it is imported already.
    kind: Any = getattr(sys.modules.get("torch"), name, None)
    return kind is not None and isinstance(error, kind)


def _system_error(error: OSError) -> tuple[str, int]:
    place = f"{error.filename}: " if error.filename else ""
    text = f"{place}{error.strerror or error}"
    if error.errno in _LASTING:
        return f"{text}; name a place that the job may read and write", 2
    return f"{text}; another try may help", 1


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
