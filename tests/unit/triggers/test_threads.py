from __future__ import annotations

import asyncio
import contextvars
from threading import Event

from trainops.triggers.threads import BACKGROUND_THREADS, in_background, in_thread

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("WHO", default="nobody")


def test_what_may_wait_never_stands_in_line_before_an_end() -> None:
    go_on = Event()

    async def ended_meanwhile() -> str:
        waiting = [asyncio.create_task(in_background(go_on.wait)) for _ in range(3 * BACKGROUND_THREADS)]
        await asyncio.sleep(0)
        try:
            return await in_thread(str, "ended")
        finally:
            go_on.set()
            await asyncio.gather(*waiting)

    assert asyncio.run(ended_meanwhile()) == "ended"


def test_a_call_in_a_thread_knows_for_which_task_it_is_made() -> None:
    async def asked(name: str) -> tuple[str, str]:
        WHO.set(name)
        return await in_thread(WHO.get), await in_background(WHO.get)

    async def both() -> list[tuple[str, str]]:
        return list(await asyncio.gather(asked("one"), asked("other")))

    assert asyncio.run(both()) == [("one", "one"), ("other", "other")]
