"""A process that works on a job key: it stops before each call of a service, until it is told how that call goes."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]


class Fate(Enum):
    """How one call of a service goes."""

    DONE = auto()
    NOT_DONE = auto()
    """503, and nothing happened."""
    NOT_SENT = auto()
    """No connection, and nothing happened; the caller knows."""
    REPLY_LOST = auto()
    """It was carried out; the caller gets 503."""
    SENT_AGAIN = auto()
    """A write was carried out, its reply was lost, and the client sends it again: answered 412, it reads back."""
    CRASH_BEFORE = auto()
    CRASH_AFTER = auto()
    ARRIVES_LATE = auto()
    """A create: the caller gets 503, and the job comes to be later."""
    NO_QUOTA = auto()
    REFUSED = auto()
    FORBIDDEN = auto()


class Crash(BaseException):
    """The process dies: nothing in the product may catch it."""


class Actor:
    """Runs `work` in a greenlet: exactly one process runs at a time, the one that was told to go on.

    :param name: who it is, in the record's story.
    :param work: gets the actor; its services call `at_call` before each request.
    """

    def __init__(self, name: str, work: Callable[[Actor], Any]) -> None:
        self.name = name
        self.call = ""
        """The request that it is about to make; empty before the first and after the end."""
        self.ended = False
        self.faulty = False
        """True once any of its calls did not simply go well."""
        self.known: set[str] = set()
        """Jobs that lists showed as they were when it began."""
        self.result: Any = None
        self.error: BaseException | None = None
        self._fate = Fate.DONE
        self._process = greenlet(self._run)
        self._process.switch(work)

    def go(self, fate: Fate = Fate.DONE) -> None:
        """Let the pending call meet its fate, and run to the next one."""
        self._fate = fate
        self.faulty = self.faulty or fate is not Fate.DONE
        self._process.switch()

    def up_to(self, call: str) -> None:
        """Go on well until it is about to make a call that begins so."""
        while not self.call.startswith(call):
            assert not self.ended, f"it never came to {call}: {self.error or self.result}"
            self.go()

    def to_the_end(self) -> Any:
        """Go on well until the work is done, and answer what came of it.

        :raises BaseException: what the work raised.
        """
        while not self.ended:
            self.go()
        if self.error is not None:
            raise self.error
        return self.result

    def at_call(self, call: str) -> Fate:
        """Stop before `call`; answers how it goes."""
        self.call = call
        getcurrent().parent.switch()
        return self._fate

    def _run(self, work: Callable[[Actor], Any]) -> None:
        try:
            self.result = work(self)
        except BaseException as error:
            self.error = error
        self.call, self.ended = "", True
