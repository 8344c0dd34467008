"""Calls that a stand-in holds: a test looks at the world between two side effects, and then lets them go on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime


@dataclass(eq=False)
class _Held:
    fault_id: str
    call: dict[str, object]
    let_go: asyncio.Event = field(default_factory=asyncio.Event)


class Holds:
    """The calls that are held now, the oldest first; for the event loop of one server alone."""

    def __init__(self) -> None:
        self._held: list[_Held] = []

    async def hold(self, fault_id: str, seconds: float, **call: object) -> None:
        """Return when the call is released, by hand or after `seconds`.

        :param fault_id: the fault that holds it.
        :param call: what `held` shows of it.
        """
        held = _Held(fault_id, call | {"since": datetime.now(UTC).isoformat()})
        self._held.append(held)
        try:
            async with asyncio.timeout(seconds):
                await held.let_go.wait()
        except TimeoutError:
            pass
        finally:
            if held in self._held:  # else it was released by hand
                self._held.remove(held)

    def held(self) -> list[dict[str, object]]:
        """Describe the calls that are held; `id` is that of the fault."""
        return [{"id": held.fault_id, **held.call} for held in self._held]

    def release(self, fault_id: str | None = None) -> int:
        """Let the calls of one fault go on, or all, and return how many there were."""
        chosen = [held for held in self._held if fault_id in {None, held.fault_id}]
        for held in chosen:
            self._held.remove(held)
            held.let_go.set()
        return len(chosen)
