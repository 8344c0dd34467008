"""What the supervisor tells the world: one JSON file, rewritten at each change."""

from __future__ import annotations

import fcntl
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO

from localcloud.files import read_json, write_json
from localcloud.process import Identity


class Status(StrEnum):
    """How a component is."""

    WAITING = "waiting"
    STARTING = "starting"
    HEALTHY = "healthy"
    DONE = "done"
    DEAD = "dead"
    STOPPED = "stopped"


@dataclass
class ComponentState:
    """One component, as of now."""

    name: str
    status: Status = Status.WAITING
    process: Identity | None = None
    port: int | None = None
    since: float = 0.0
    """When it got this status, seconds since the epoch."""
    took: float | None = None
    """Seconds from its start until it was healthy."""
    restarts: int = 0
    error: str = ""


@dataclass
class CloudState:
    """The supervisor and its components."""

    supervisor: Identity
    started: float
    ready: bool = False
    """Everything has been healthy at least once."""
    stopping: bool = False
    components: list[ComponentState] = field(default_factory=list)

    def save(self, path: Path) -> None:
        """Write the file, atomically."""
        write_json(path, asdict(self))

    @classmethod
    def load(cls, path: Path) -> CloudState | None:
        """Read the file; None when there is none."""
        value = read_json(path)
        if not isinstance(value, dict):
            return None
        components = [_component(one) for one in value.pop("components")]
        return cls(**value | {"supervisor": Identity(**value["supervisor"]), "components": components})

    def runs(self) -> bool:
        """Say whether the supervisor that wrote this is alive."""
        return self.supervisor.is_alive()


def take_lock(path: Path) -> IO[str] | None:
    """Take the lock of this local cloud for the life of the process; None when another supervisor has it."""
    file = path.open("w", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def _component(value: dict[str, object]) -> ComponentState:
    process = value.pop("process")
    identity = Identity(**process) if isinstance(process, dict) else None
    return ComponentState(**value | {"process": identity, "status": Status(str(value["status"]))})  # type: ignore[arg-type]
