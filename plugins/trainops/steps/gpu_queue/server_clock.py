"""The server's time, of which only the stamps on its objects are known."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

THE_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


class ServerClock:
    """Tells the newest stamp that was seen, and what has passed here since then: never ahead of the server.

    What it adds is a span, which no wrong clock of this machine falsifies. Without it, a queue in which nobody writes
    would stand still, and a pause in it last until the next write.

    :param monotonic: seconds that pass here, from any beginning.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._stamp = THE_BEGINNING
        self._seen = 0.0

    def now(self, newest: datetime | None) -> datetime:
        """The server's time at least.

        :param newest: the newest stamp of what was just read; None when nothing was there.
        """
        passed = self._monotonic()
        told = self._stamp if self._stamp is THE_BEGINNING else self._stamp + timedelta(seconds=passed - self._seen)
        if newest is not None and newest > told:
            self._stamp, self._seen = newest, passed
            return newest
        return told
