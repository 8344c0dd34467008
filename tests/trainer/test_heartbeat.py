"""Heartbeats against a real store, in seconds instead of a minute."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import torch.distributed as dist

from trainer import heartbeat
from trainer.cluster import Cluster
from trainer.heartbeat import Heartbeats, heartbeat_key

Start = Callable[[int], Heartbeats]
NAMES = ("workerpool0-0 (a:1)", "workerpool1-0 (b:1)", "workerpool2-0 (c:1)")


@pytest.fixture
def store(free_port: int) -> Any:
    """The store of three replicas that have just met."""
    make: Any = dist.TCPStore  # type: ignore[attr-defined]
    made = make("127.0.0.1", free_port, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=10))
    made.set(heartbeat.VERDICT_KEY, "")
    for rank in range(3):
        made.set(heartbeat_key(rank), "")
    return made


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the process would have ended with."""
    told: list[str] = []
    monkeypatch.setattr(heartbeat, "_end", told.append)
    for name, seconds in {
        "BEAT_SECONDS": 0.05,
        "LOOK_SECONDS": 0.05,
        "SILENCE_SECONDS": 1.5,
        "PATIENCE_SECONDS": 0.5,
    }.items():
        monkeypatch.setattr(heartbeat, name, seconds)
    return told


@pytest.fixture
def start(free_port: int, ends: list[str]) -> Iterator[Start]:
    """Begins the heartbeats of a replica."""
    begun: list[Heartbeats] = []

    def begin(rank: int) -> Heartbeats:
        begun.append(Heartbeats(Cluster(rank, 3, "127.0.0.1", free_port, names=NAMES)))
        begun[-1].begin()
        return begun[-1]

    yield begin
    for heartbeats in begun:
        heartbeats.leave(failed=True)


def wait_until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_replica_without_a_word_is_named_by_all_others(store: Any, start: Start, ends: list[str]) -> None:
    start(0)
    start(1)

    wait_until(lambda: len(ends) >= 2)

    assert ends[0].startswith("workerpool2-0 (c:1): no word of it for")
    # The first that noticed told the other one.
    assert set(ends) == {ends[0]}


def test_replicas_that_end_in_order_end_nobody(store: Any, start: Start, ends: list[str]) -> None:
    first, second, third = start(0), start(1), start(2)

    third.leave(failed=False)
    second.leave(failed=False)
    wait_until(lambda: store.get(heartbeat_key(2)) == b"ended")
    time.sleep(2.5)

    assert ends == []
    began = time.monotonic()
    first.leave(failed=False)
    assert time.monotonic() - began < heartbeat.LEAVING_SECONDS


def test_a_replica_that_failed_is_named_when_a_connection_breaks(store: Any, start: Start) -> None:
    first, second, _ = start(0), start(1), start(2)

    second.leave(failed=True)

    assert first.find_lost() == "workerpool1-0 (b:1): it ended with an error, which its own log has"


def test_when_the_store_is_gone_the_first_replica_is_lost(free_port: int, start: Start, ends: list[str]) -> None:
    # Nobody listens there.
    third = start(2)

    assert third.find_lost() == "workerpool0-0 (a:1): its store is gone"
