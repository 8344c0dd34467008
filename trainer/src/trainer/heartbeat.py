"""Heartbeats: how replicas notice that one of them is gone, also where no connection breaks.

Each replica writes a word into the store where they met, every few seconds, and reads those of the others. Threads of
their own do it: the replica itself may be waiting for another one, and gloo and nccl say nothing of a machine that
stands still.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from datetime import timedelta
from typing import Any, NoReturn

import torch.distributed as dist

from trainer.cluster import Cluster

BEAT_SECONDS = 2.0
"""Between two words of a replica."""
LOOK_SECONDS = 1.0
"""Between two looks at the clocks."""
SILENCE_SECONDS = 45.0
"""After so long without a new word a replica is lost."""
PATIENCE_SECONDS = 10.0
"""The same where something else says that one is lost: a broken connection, or its own last word."""
LEAVING_SECONDS = 30.0
"""How long the first replica, which holds the store, waits for the others to leave."""
VERDICT_KEY = "lost"
"""Where in the store stands who was lost: the first replica that notices says it, so that all name the same one."""
_ENDED, _FAILED = "ended", "failed"
_ANSWER_TIMEOUT = timedelta(seconds=10)


def heartbeat_key(rank: int) -> str:
    """Return where in the store a replica's word stands."""
    return f"heartbeat/{rank}"


def ended(word: bytes) -> bool:
    """Whether a word is the last one of a replica."""
    return word.decode() in {_ENDED, _FAILED}


def connect(cluster: Cluster, timeout: timedelta = _ANSWER_TIMEOUT) -> Any:
    """Open a connection to the store of a cluster."""
    make: Any = dist.TCPStore  # type: ignore[attr-defined]  # public, but torch does not export it to type checkers
    return make(cluster.host, cluster.port, is_master=False, wait_for_workers=False, timeout=timeout)


def check_listening(cluster: Cluster) -> None:
    """Raise ConnectionError when nobody listens where the store was; no answer at all is none, and passes.

    torch itself tries such a connection again and again, and prints its C++ stack where one breaks.
    """
    try:
        socket.create_connection((cluster.host, cluster.port), timeout=5).close()
    except ConnectionError:
        raise
    except OSError:
        return


class Heartbeats:
    """This replica's word, and what is known of the others'. They must have met before it begins."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._others = [rank for rank in range(cluster.size) if rank != cluster.rank]
        now = time.monotonic()
        self._words: dict[int, tuple[str, float]] = dict.fromkeys(self._others, ("", now))
        self._answered = now
        self._gone: float | None = None
        self._word = ""
        self._verdict = ""
        self._heard_verdict = ""
        self._told = threading.Event()
        self._wake = threading.Event()
        self._closed = threading.Event()
        self._judging = threading.Event()
        self._beating = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._watching = threading.Thread(target=self._watch, name="lost replicas", daemon=True)

    def begin(self) -> None:
        """Begin to beat, and to watch."""
        self._beating.start()
        self._watching.start()

    def leave(self, *, failed: bool) -> None:
        """Say that this replica ends; the first one waits for the others, since the store ends with it."""
        self._word = _FAILED if failed else _ENDED
        self._wake.set()
        deadline = time.monotonic() + LEAVING_SECONDS
        while self._cluster.rank == 0 and not failed and time.monotonic() < deadline and not self._all_left():
            time.sleep(0.05)
        self._closed.set()
        self._wake.set()
        self._beating.join(timeout=3)

    def find_lost(self) -> str | None:
        """Return who was lost, after a connection broke; it takes some seconds. None when nobody is known to be."""
        self._judging.set()
        deadline = time.monotonic() + PATIENCE_SECONDS + 4 * BEAT_SECONDS
        while time.monotonic() < deadline:
            if found := self._lost(PATIENCE_SECONDS):
                return self._tell(found)
            time.sleep(0.2)
        return None

    def _all_left(self) -> bool:
        return all(word in {_ENDED, _FAILED} for word, _ in self._words.values())

    def _beat(self) -> None:
        store: Any = None
        number = 0
        while True:
            left = self._closed.is_set()
            number += 1
            try:
                if store is None:
                    check_listening(self._cluster)
                    store = connect(self._cluster)
                store.set(heartbeat_key(self._cluster.rank), self._word or str(number))
                if self._others:
                    self._hear(store.multi_get([VERDICT_KEY, *map(heartbeat_key, self._others)]))
                if self._verdict:
                    store.compare_set(VERDICT_KEY, "", self._verdict)
                    self._told.set()
                self._answered, self._gone = time.monotonic(), None
            except ConnectionError:
                self._gone = self._gone or time.monotonic()
            except (dist.DistError, RuntimeError):
                # What an answer that came too late would do to the next question nobody knows: a new connection.
                store = None
            if left:
                return
            # Somebody who leaves looks often, so that it does not keep the others.
            self._wake.wait(0.1 if self._word else BEAT_SECONDS)
            self._wake.clear()

    def _hear(self, words: list[bytes]) -> None:
        now = time.monotonic()
        self._heard_verdict = self._heard_verdict or words[0].decode()
        for rank, word in zip(self._others, words[1:], strict=True):
            if word.decode() != self._words[rank][0]:
                self._words[rank] = (word.decode(), now)

    def _watch(self) -> None:
        # It only looks at clocks, so that nothing it waits for can keep it.
        looked = time.monotonic()
        while not self._closed.wait(LOOK_SECONDS) and not self._judging.is_set():
            since, looked = looked, time.monotonic()
            if looked - since > LOOK_SECONDS + PATIENCE_SECONDS:
                self._begin_anew(looked)
            if not self._word and (found := self._lost(SILENCE_SECONDS)):
                _end(self._tell(found))

    def _begin_anew(self, now: float) -> None:
        """Forget the clocks: who stood still itself, as a paused container does, cannot say that others were silent."""
        self._answered = now
        self._words = {rank: (word, now) for rank, (word, _) in self._words.items()}

    def _tell(self, found: str) -> str:
        """Tell the others who was lost; the first replica gives them time to hear it, since the store ends with it."""
        self._verdict = found
        self._wake.set()
        if self._told.wait(1.0) and self._cluster.rank == 0:
            self._closed.wait(2 * BEAT_SECONDS)
        return self._heard_verdict or found

    def _lost(self, silence: float) -> str | None:
        if self._heard_verdict:
            return self._heard_verdict
        now = time.monotonic()
        gone = self._gone is not None and now - self._gone > PATIENCE_SECONDS / 2
        # A store that is gone may have ended with a replica that noticed who was lost before.
        if found := self._silent(PATIENCE_SECONDS if gone else silence):
            return found
        if gone:
            return f"{self._cluster.name(0)}: its store is gone"
        if self._cluster.rank != 0 and now - self._answered > max(silence, PATIENCE_SECONDS + 2 * BEAT_SECONDS):
            return f"{self._cluster.name(0)}: no word of it for {now - self._answered:.0f} s"
        return None

    def _silent(self, silence: float) -> str | None:
        now = time.monotonic()
        for rank, (word, heard) in self._words.items():
            if word == _FAILED and now - heard > PATIENCE_SECONDS:
                return f"{self._cluster.name(rank)}: it ended with an error, which its own log has"
            # While the first replica is silent nothing is heard of anybody.
            if word not in {_ENDED, _FAILED} and self._answered - heard > silence:
                return f"{self._cluster.name(rank)}: no word of it for {now - heard:.0f} s"
        return None


def _end(lost: str) -> NoReturn:
    """End this process where it stands: its threads wait for somebody who will not come."""
    print(f"error: a replica was lost: {lost}; another try resumes from the newest checkpoint", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)
