"""The thread that drives all jobs."""

from __future__ import annotations

import logging
import threading
import time

from localcloud.vertex.lifecycle import Lifecycle
from localcloud.vertex.records import JobRecord
from localcloud.vertex.replicas import Replicas
from localcloud.vertex.store import Store

_TICK_SECONDS = 0.1
_IDLE_SECONDS = 1.0
_log = logging.getLogger(__name__)


class Engine:
    """Advances every live job ten times a second; sleeps while there is none."""

    def __init__(self, store: Store, lifecycle: Lifecycle, replicas: Replicas) -> None:
        self._store = store
        self._lifecycle = lifecycle
        self._replicas = replicas
        self._stopping = threading.Event()
        self._work = threading.Event()
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self) -> None:
        """Begin; jobs of an earlier server are taken up where they are."""
        self._thread.start()

    def wake(self) -> None:
        """Advance soon, because a job came or changed."""
        self._work.set()

    def shut_down(self, seconds: float) -> None:
        """Stop driving and end all replicas; the next server starts their jobs again as a new attempt.

        :param seconds: how long replicas may take to end before SIGKILL.
        """
        self._stopping.set()
        self._work.set()
        self._thread.join()
        deadline = time.monotonic() + seconds
        while running := self._running():
            for record, name in running:
                self._replicas.stop(record, name, kill=time.monotonic() > deadline)
            time.sleep(0.05)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._work.clear()
            with self._store.lock:
                live = self._store.live()
                for record in live:
                    self._advance(record)
            self._work.wait(_TICK_SECONDS if live else _IDLE_SECONDS)

    def _advance(self, record: JobRecord) -> None:
        try:
            self._lifecycle.advance(record)
        except Exception:
            # One broken job must not stop the others; it is tried again at the next tick.
            _log.exception("job %s cannot be advanced", record.job_id)

    def _running(self) -> list[tuple[JobRecord, str]]:
        return [(record, name) for record in self._store.live() for name in self._replicas.running(record)]
