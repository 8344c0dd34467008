"""Keeps one component running: starts it, waits until it is healthy, notices its death, starts it again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path

from localcloud.component import Component
from localcloud.errors import LocalCloudError
from localcloud.home import Home
from localcloud.process import MARK, Process, listens
from localcloud.state import ComponentState, Status

log = logging.getLogger("localcloud")

FIRST_DELAY, LONGEST_DELAY = 0.5, 30.0
"""Seconds before a component that died is started again; doubled at each death, forgotten after a quiet minute."""
QUIET_SECONDS = 60.0
CHECK_SECONDS = 5.0
"""A healthy component is asked for its health this often."""
HUNG_SECONDS = 180.0
"""A component that is alive but gives no sign of health for so long is ended and started again."""


class Keeper:
    """The component, its process and its state."""

    def __init__(self, component: Component, home: Home, is_ready: Callable[[str], bool], checks: Executor) -> None:
        self.component = component
        self.state = ComponentState(component.name, port=component.port)
        self._home = home
        self._is_ready = is_ready
        self._checks = checks
        self._check: Future[bool] | None = None
        self._process: Process | None = None
        self._delay = FIRST_DELAY
        self._not_before = 0.0
        self._started = 0.0
        self._last_health = 0.0
        self._next_check = 0.0

    @property
    def pid(self) -> int | None:
        """Id of the process, None while there is none."""
        return self._process.identity.pid if self._process is not None else None

    @property
    def log_file(self) -> Path:
        """Where the component's output goes."""
        return self._home.logs / f"{self.component.name}.log"

    def is_satisfied(self) -> bool:
        """Say whether others that need it may start."""
        return self.state.status in {Status.HEALTHY, Status.DONE}

    def tick(self, now: float) -> bool:
        """Do what is due; return whether the state changed."""
        before = (self.state.status, self.state.restarts, self.state.error)
        if self._process is not None and (code := self._process.exit_code()) is not None:
            self._ended(code, now)
        elif self._process is None:
            self._maybe_start(now)
        elif not self.component.once:
            self._follow_health(now)
        return before != (self.state.status, self.state.restarts, self.state.error)

    def ask_to_end(self) -> None:
        """Signal its end without waiting for it."""
        if self._process is not None:
            self._process.ask_to_end(self.component.stop_signal)

    def end(self) -> None:
        """End it with all of its session."""
        if self._process is not None:
            self._process.end(self.component.grace_seconds)
            self._process = None
        self._set(Status.STOPPED, time.time())

    def _maybe_start(self, now: float) -> None:
        waits = self.state.status is Status.DONE or now < self._not_before
        if waits or not all(self._is_ready(name) for name in self.component.needs):
            return
        try:
            self.component.prepare()
            environment = {**self.component.environment, MARK: str(self._home.state)}
            self._process = Process.start(self.component.command, environment, self._home.root, self.log_file)
        except (LocalCloudError, OSError) as error:
            self._failed(str(error), now)
            return
        self._started, self._last_health, self._next_check = now, now, now
        self._check = None  # an answer about the process before says nothing about this one
        self.state.process = self._process.identity
        self._set(Status.STARTING, now)
        log.info("%s: started, process %d", self.component.name, self._process.identity.pid)

    def _follow_health(self, now: float) -> None:
        """Ask in a thread: a server that hangs must not hide the death of another."""
        if self._check is None:
            if now >= self._next_check:
                self._check = self._checks.submit(self._is_healthy, self._process, self.state.status)
            return
        if not self._check.done():
            return
        healthy, self._check = self._check.result(), None
        if healthy:
            self._last_health = now
            self._became_healthy(now)
        self._next_check = now + (0.3 if self.state.status is Status.STARTING else CHECK_SECONDS)
        # Without a port its health is told by another component, whose silence proves nothing.
        if self.component.port is not None and now - self._last_health > HUNG_SECONDS:
            log.warning("%s: alive but not healthy for %.0f s, ending it", self.component.name, now - self._last_health)
            self._end_session()
            self._failed("gave no sign of health", now)

    def _is_healthy(self, process: Process | None, status: Status) -> bool:
        if not self.component.is_healthy(self._started):
            return False
        # An answer proves nothing about this process when a left-over of an earlier one still holds the port.
        port = self.component.port
        if port is None or process is None or status is Status.HEALTHY:
            return True
        return listens(process.identity, port)

    def _became_healthy(self, now: float) -> None:
        if self.state.status is Status.HEALTHY:
            if now - self._started > QUIET_SECONDS:
                self._delay = FIRST_DELAY
            return
        self.state.took, self.state.error = now - self._started, ""
        self._set(Status.HEALTHY, now)
        log.info("%s: healthy after %.1f s", self.component.name, self.state.took)

    def _ended(self, code: int, now: float) -> None:
        if self.component.once and code == 0:
            self.state.took = now - self._started
            self.component.is_healthy(self._started)
            self._process = None
            self._set(Status.DONE, now)
            log.info("%s: done after %.1f s", self.component.name, self.state.took)
            return
        self._end_session()
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        self._failed(f"ended ({how}), see {self.log_file}", now)

    def _end_session(self) -> None:
        """End what is left of the session: a killed scheduler's tasks must not run beside their next try."""
        if self._process is not None:
            self._process.end(grace_seconds=0)
            self._process = None

    def _failed(self, why: str, now: float) -> None:
        self._not_before = now + self._delay
        log.warning("%s: %s; starting it again in %.1f s", self.component.name, why, self._delay)
        self._delay = min(self._delay * 2, LONGEST_DELAY)
        self.state.restarts += 1
        self.state.error = why
        self._set(Status.DEAD, now)

    def _set(self, status: Status, now: float) -> None:
        self.state.status, self.state.since = status, now
