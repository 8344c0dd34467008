"""What one triggerer knows of the GPU queue: one tick serves all runs that wait for GPUs in it."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import AsyncGenerator, Hashable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from trainops.errors import TrainopsError
from trainops.triggers.threads import in_thread

if TYPE_CHECKING:
    from trainops.steps.gpu_queue import Tick
    from trainops.steps.services import Services

_log = logging.getLogger(__name__)

TICK_SECONDS = 10.0
"""Between two looks at the queue, at most."""

LEAVING_SECONDS = 1.0
"""The same while a job was asked to leave: each second its GPUs stand idle costs."""


class Waiter:
    """One run that waits for GPUs.

    :param job_key: whose place in the queue it is.
    """

    def __init__(self, job_key: str) -> None:
        self.job_key = job_key
        self._tick: Tick | None = None
        self._admitted = asyncio.Event()

    async def admitted(self, seconds: float) -> bool:
        """Wait for GPUs, at most so long; False when there are none yet."""
        try:
            await asyncio.wait_for(self._admitted.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def reason(self) -> str | None:
        """Why it waits, by the last tick; to be asked for in a thread, since it makes the sentences of everybody."""
        return None if self._tick is None else self._tick.reason(self.job_key)

    def tell(self, tick: Tick) -> None:
        """Note what a tick decided."""
        self._tick = tick
        if self.job_key in tick.ledger.leases:
            self._admitted.set()


class QueueBoard:
    """Ticks for all who wait in this process, as long as there are any.

    :param seconds: between two ticks, while nobody is leaving.
    """

    def __init__(self, services: Services, seconds: float) -> None:
        self._services = services
        self._seconds = seconds
        self._waiters: set[Waiter] = set()
        self._loop: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def waiting(self, job_key: str) -> AsyncGenerator[Waiter]:
        """Keep a waiter informed while the block runs."""
        waiter = Waiter(job_key)
        self._waiters.add(waiter)
        if self._loop is None:
            # An empty context: else what it logs would go to the task log of the trigger that started it.
            self._loop = asyncio.create_task(self._tick_on(), context=contextvars.Context())
        try:
            yield waiter
        finally:
            self._waiters.discard(waiter)
            if not self._waiters and self._loop is not None:
                self._loop.cancel()
                self._loop = None

    async def _tick_on(self) -> None:
        while True:
            try:
                pause = await self._tick()
            except TrainopsError as error:
                _log.warning("the GPU queue could not be looked at: %s", error)
                pause = self._seconds
            except Exception:  # one who waits would be told nothing for ever, were this task to end
                _log.exception("the GPU queue could not be looked at")
                pause = self._seconds
            await asyncio.sleep(pause)

    async def _tick(self) -> float:
        """Tick, tell everybody, and follow those who were asked to leave; answers the seconds to the next one."""
        from trainops.steps.preemption import follow_leaving

        tick = await in_thread(self._services.queue.tick)
        for waiter in list(self._waiters):
            waiter.tell(tick)
        if not tick.ledger.leaving():
            return self._seconds
        freed = await in_thread(follow_leaving, self._services, tick.ledger, actor="the GPU queue", say=_log.info)
        return 0.0 if freed else min(self._seconds, LEAVING_SECONDS)


_BOARDS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, QueueBoard]] = WeakKeyDictionary()


def queue_board_of(services: Services, poll_seconds: float) -> QueueBoard:
    """Return this event loop's board of the queue, as `services` see it."""
    seconds = min(TICK_SECONDS, poll_seconds)
    boards = _BOARDS.setdefault(asyncio.get_running_loop(), {})
    return boards.setdefault((services, seconds), QueueBoard(services, seconds))
