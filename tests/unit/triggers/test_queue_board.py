from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from trainops.steps.gpu_queue.ledger import LeaseEntry, Ledger
from trainops.triggers.queue_board import QueueBoard

NOW = datetime(2026, 12, 1, tzinfo=UTC)
LEASE = LeaseEntry(gpus={"pool": 1}, state="reserved", admitted_at=NOW, reserved_until=NOW, record="gs://my-bucket/r")


class FailsFirst:
    """A queue whose first look raises what nobody foresaw."""

    def __init__(self) -> None:
        self.looks = 0

    def tick(self) -> Any:
        self.looks += 1
        if self.looks == 1:
            raise KeyError("nobody foresaw it")
        return SimpleNamespace(ledger=Ledger(leases={"exp-run-submit": LEASE}))


def test_an_error_that_nobody_foresaw_is_logged_and_those_who_wait_are_told_at_the_next_look(
    caplog: pytest.LogCaptureFixture,
) -> None:
    services: Any = SimpleNamespace(queue=FailsFirst())

    async def wait() -> bool:
        async with QueueBoard(services, seconds=0.01).waiting("exp-run-submit") as waiter:
            return await waiter.admitted(10)

    assert asyncio.run(wait())
    assert "nobody foresaw it" in caplog.text
