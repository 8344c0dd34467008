"""Places in the GPU queue: one request object per job key, and one ledger, swapped by generation.

Anybody may tick: read requests, orders and ledger, let `policy.gpu_queue.plan` decide, and swap the ledger. A lease is
*reserved* with a deadline when admitted and *bound* to a job once that exists. A lease lives as long as its job: the
tick frees only reservations whose deadline passed; everything else is freed by whoever saw the job end.
Time is the server's, read from the objects that it stamps, and what has passed since they were seen.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from trainops import naming
from trainops.config.gpu_pools import GpuPools
from trainops.errors import ConfigError, WriteConflict
from trainops.gcp.storage import Storage
from trainops.policy import gpu_queue
from trainops.policy.lifecycle import Lease
from trainops.policy.record import Record
from trainops.steps.gpu_queue.leaving import LeaveSignals
from trainops.steps.gpu_queue.ledger import LeaseEntry, Ledger, LedgerStore
from trainops.steps.gpu_queue.orders import OrderStore
from trainops.steps.gpu_queue.parsing import parse
from trainops.steps.gpu_queue.planning import Made, View, apply, knobs_of, make_plan
from trainops.steps.gpu_queue.requests import Choice, QueueRequest, RequestStore, choices_of, request_of
from trainops.steps.gpu_queue.server_clock import ServerClock
from trainops.steps.record_store import RecordStore

REFRESH_SECONDS = 60.0
"""How often an owner says that it is still there, and how far it is."""

RACES = 5


@dataclass(frozen=True)
class Tick:
    """What one tick decided, and the ledger after it."""

    ledger: Ledger
    made: Made
    begun: float
    """By the process's own monotonic clock."""
    quotas: dict[str, int]
    knobs: gpu_queue.Knobs
    closed_to_us: str = ""
    """Why nobody is admitted by this deployment; empty when it plans."""

    def reason(self, job_key: str) -> str:
        """Why a job key starts, runs, leaves or waits, in one sentence."""
        return self.closed_to_us or self.reasons.get(job_key, "it waits for the next look at the queue")

    @cached_property
    def reasons(self) -> dict[str, str]:
        """The same of everybody; made when it is first asked for."""
        made = self.made
        return gpu_queue.explain(made.plan, made.asked, self.quotas, self.knobs, closed=made.view.closed)


class GpuQueue:
    """Places in the queue, and the ledger that says who holds GPUs."""

    def __init__(self, storage: Storage, work: str, pools: GpuPools) -> None:
        self.storage = storage
        self.work = work
        self.pools = pools
        self.quotas = pools.quotas()
        self.orders = OrderStore(storage, work)
        self._ledger = LedgerStore(storage, work, pools)
        self._requests = RequestStore(storage, work)
        self._signals = LeaveSignals(storage, pools.policy.grace_minutes)
        self._clock = ServerClock()
        self._refreshed: dict[str, float] = {}
        self._ticking = threading.Lock()
        self._last: Tick | None = None

    @property
    def last(self) -> Tick | None:
        """The last tick of this process."""
        return self._last

    @property
    def unread(self) -> list[str]:
        """What stood among requests and orders at the last look and is none, one sentence each; it is left alone."""
        return [*self._requests.unread, *self.orders.unread]

    def enqueue(self, record: Record, record_uri: str) -> None:
        """Ask for a record's GPUs; asking again changes nothing.

        :raises ConfigError: when no quota can ever hold the request.
        """
        request = self._request(record, record_uri)
        try:
            self._write(request, generation=0)
        except WriteConflict:
            self._keep_asking(record, record_uri)

    def lease(self, record: Record, record_uri: str) -> Lease:
        """The job key's place, after one tick for everybody when it waits.

        Only a reservation of what the record's generation can run on counts: a clear may ask for other GPUs than the
        generation before, whose request or reservation still stands.

        :raises ConfigError: when no quota can ever hold the request.
        """
        key, wanted = record.job_key, [item.gpus for item in choices_of(record)]
        entry = self._ledger.read().leases.get(key)
        if entry is not None and _fits(entry, wanted):
            return Lease(state=entry.state, gpus=entry.gpus)
        if entry is not None and _is_current(self.storage, record_uri, record):
            wrong = {key: entry}  # what an earlier generation asked for
            self._ledger.swap(lambda now: _take_back(now, wrong))
        if not self._keep_asking(record, record_uri):
            return Lease(state="none")
        tick = self.tick()
        entry = tick.ledger.leases.get(key)
        if entry is not None and _fits(entry, wanted):
            return Lease(state=entry.state, gpus=entry.gpus)
        return Lease(state="waiting", reason=tick.reason(key))

    def report(self, record: Record, record_uri: str, remaining_seconds: float | None) -> None:
        """Say that the owner still follows its job, and how much is left of it; at most once in `REFRESH_SECONDS`."""
        self._keep_asking(record, record_uri, remaining_seconds)

    def bind(self, job_key: str, job_name: str) -> bool:
        """Tie the lease to the job that now exists; False when there is no lease any more."""

        def bound(ledger: Ledger) -> bool:
            entry = ledger.leases.get(job_key)
            if entry is None or entry.job_name == job_name:
                return False
            entry.state, entry.job_name = "bound", job_name
            return True

        return job_key in self._ledger.swap(bound).leases

    def hold(self, record: Record, record_uri: str, job_name: str) -> None:
        """Make the ledger say that a job that lives holds its GPUs, whatever became of its reservation.

        Its bind may have been missed by a crash. More than the quota may be held then, until one of the jobs has ended.
        """
        gpus = record.machines.gpus

        def held(ledger: Ledger) -> bool:
            entry = ledger.leases.get(record.job_key)
            if entry is not None and entry.job_name == job_name:
                return False
            since = record.opened_at if entry is None else entry.admitted_at
            ledger.leases[record.job_key] = LeaseEntry(
                gpus=gpus, state="bound", admitted_at=since, reserved_until=since, job_name=job_name, record=record_uri
            )
            return True

        self._ledger.swap(held)

    def free(self, record: Record, record_uri: str) -> None:
        """Give the GPUs back and stay in the queue, with the age that the request has; twice changes nothing.

        The request tells first how far the job key has come, and where it pauses: one that ran for hours must not pass
        for one that never did, and take back what was freed for another.

        :param record: with the attempt that has ended.
        """
        for _ in range(RACES):
            if self._told_how_far(record, record_uri):
                break
        self._ledger.swap(lambda ledger: ledger.leases.pop(record.job_key, None) is not None)

    def _told_how_far(self, record: Record, record_uri: str) -> bool:
        """Write into the request how far its job key has come; False when its owner wrote at the same time."""
        found = self._standing(record.job_key)
        if found is None:
            return True
        stands, generation = found
        now = request_of(record, record_uri, choices_of(record))
        try:
            self._write(now.model_copy(update=_kept(stands)), generation=generation)
        except WriteConflict:
            return False
        return True

    def release(self, job_key: str) -> None:
        """Give the GPUs back and leave the queue; releasing twice changes nothing."""
        self.storage.delete(naming.request_uri(self.work, job_key))
        self._ledger.swap(lambda ledger: ledger.leases.pop(job_key, None) is not None)
        self.orders.forget(job_key)

    def tick(self) -> Tick:
        """Admit whom the plan admits and ask to leave whom it wants to leave, in one swap.

        Those who ask for it at the same time in one process get one tick, which began after they had asked.
        """
        asked = time.monotonic()
        with self._ticking:
            if self._last is None or self._last.begun < asked:
                self._last = self._tick()
            return self._last

    def look(self) -> Tick:
        """What a tick would decide now; nothing is written."""
        ledger = self._ledger.read()
        return self._told(ledger, make_plan(ledger, self._view(), self.quotas, self.pools.policy), time.monotonic())

    def adopt(self) -> None:
        """Have all deployments plan with the quotas and the policy of this one; the others are refused from then on."""
        self._ledger.adopt()

    def snapshot(self) -> tuple[Ledger, list[QueueRequest]]:
        """Ledger and requests as they are, for people who look."""
        return self._ledger.read(), [item.request for item in self._requests.all()]

    def _tick(self) -> Tick:
        begun = time.monotonic()
        view = self._view()
        plans: list[Made] = []

        def ticked(ledger: Ledger) -> bool:
            expired = _expired(ledger, view.now)
            for key in expired:
                del ledger.leases[key]
            made = make_plan(ledger, view, self.quotas, self.pools.policy)
            plans.append(made)
            if self._ledger.difference(ledger):
                return bool(expired)
            self._ledger.agree(ledger)
            return apply(ledger, made) or bool(expired)

        ledger = self._without_forsaken(self._ledger.swap(ticked), view, plans)
        self._signals.send(ledger, self.orders)
        return self._told(ledger, plans[-1], begun)

    def _without_forsaken(self, ledger: Ledger, view: View, plans: list[Made]) -> Ledger:
        """Free reservations of requests that were released after they had been listed: nobody else would use them.

        Any tick may have made them, one that was killed or got an error right after its write too, and any plan of
        this one: a write whose reply was lost may be in the ledger under the write of somebody else.
        """
        listed = view.by_key().keys() - {item.job_key for made in plans for item in made.plan.admissions}
        doubtful = {key: item for key, item in ledger.leases.items() if item.state == "reserved" and key not in listed}
        gone = {key: item for key, item in doubtful.items() if not self._asks(key)}
        return self._ledger.swap(lambda now: _take_back(now, gone)) if gone else ledger

    def _asks(self, job_key: str) -> bool:
        return self.storage.exists(naming.request_uri(self.work, job_key))

    def _told(self, ledger: Ledger, made: Made, begun: float) -> Tick:
        return Tick(ledger, made, begun, self.quotas, knobs_of(self.pools.policy), self._ledger.difference(ledger))

    def _view(self) -> View:
        requests = self._requests.all()
        jobs, pools = self.orders.all()
        now = self._clock.now(max((item.updated for item in requests), default=None))
        return View(requests, jobs, pools, now)

    def _request(self, record: Record, record_uri: str) -> QueueRequest:
        """What a record's generation asks for.

        :raises ConfigError: when no quota can ever hold it.
        """
        return request_of(record, record_uri, self._possible(choices_of(record)))

    def _possible(self, choices: Sequence[Choice]) -> list[Choice]:
        """Those that a quota can hold; the file may have changed since the run was planned."""
        possible: list[Choice] = []
        problems: list[ConfigError] = []
        for choice in choices:
            try:
                self.pools.require_room(choice.gpus)
            except ConfigError as error:
                problems.append(error)
            else:
                possible.append(choice)
        if not possible:
            raise problems[0]
        return possible

    def _keep_asking(self, record: Record, record_uri: str, remaining_seconds: float | None = None) -> bool:
        """Say that the owner is there, what it waits for, and how far it is; False when there is no request.

        :raises ConfigError: when no quota can ever hold what it waits for now; the request is gone then.
        """
        key = record.job_key
        found = self._standing(key)
        if found is None:
            return False
        stands, generation = found
        asked = self._changed(stands, record, record_uri)
        if asked is None and time.monotonic() - self._refreshed.get(key, float("-inf")) < REFRESH_SECONDS:
            return True
        self._refreshed[key] = time.monotonic()
        asked = asked or stands
        if remaining_seconds is not None:
            asked = asked.model_copy(update={"remaining_seconds": remaining_seconds})
        with contextlib.suppress(WriteConflict):  # released, or written by another process of the same owner
            self._write(asked, generation=generation)
        return True

    def _changed(self, stands: QueueRequest, record: Record, record_uri: str) -> QueueRequest | None:
        """The request that takes the place of one that an earlier generation or attempt wrote; None when it may stand.

        One that asks for no more keeps its age: whoever came later waits no longer for it than for the one before. One
        that asks for more, or of another pool, is as old as this moment, else a place could be kept with a small one.
        """
        kept = _kept(stands)
        if stands == request_of(record, record_uri, choices_of(record)).model_copy(update=kept):
            return None
        if not _is_current(self.storage, record_uri, record):
            return None
        try:
            asked = self._request(record, record_uri)
        except ConfigError:
            self.release(record.job_key)
            raise
        same = asked.model_copy(update=kept)
        if stands == same:
            return None
        return asked if _asks_for_more(asked, stands, record) else same

    def _standing(self, job_key: str) -> tuple[QueueRequest, int] | None:
        """A job key's request and its storage generation, with the moment at which it was first written."""
        uri = naming.request_uri(self.work, job_key)
        found = self.storage.read_json(uri)
        if found is None:
            return None
        request = parse(QueueRequest, uri, found.value)
        if request.arrived is None:  # no owner knows it before the first write
            info = self.storage.info(uri)
            request = request.model_copy(update={"arrived": None if info is None else info.updated})
        return request, found.generation

    def _write(self, request: QueueRequest, *, generation: int) -> None:
        uri = naming.request_uri(self.work, request.job_key)
        self.storage.write_json(uri, request.model_dump(mode="json"), generation=generation)


def _expired(ledger: Ledger, now: datetime) -> list[str]:
    return [key for key, item in ledger.leases.items() if item.state == "reserved" and item.reserved_until < now]


def _fits(entry: LeaseEntry, wanted: Sequence[Mapping[str, int]]) -> bool:
    """True of a reservation of what is wanted, and of any lease that has a job: what that holds, it holds."""
    return entry.state == "bound" or entry.gpus in wanted


def _kept(stands: QueueRequest) -> dict[str, Any]:
    return {"arrived": stands.arrived, "remaining_seconds": stands.remaining_seconds}


def _asks_for_more(asked: QueueRequest, stands: QueueRequest, record: Record) -> bool:
    """True of a request for more GPUs at once than stood, or for other pools, but those of the same generation."""
    before = [choice.gpus for choice in stands.choices]
    if max(sum(choice.gpus.values()) for choice in asked.choices) > max(sum(gpus.values()) for gpus in before):
        return True
    if any(item.gpus in before for item in record.candidates):
        return False
    most = {pool: max(gpus.get(pool, 0) for gpus in before) for pool in {pool for gpus in before for pool in gpus}}
    return any(count > most.get(pool, 0) for choice in asked.choices for pool, count in choice.gpus.items())


def _take_back(ledger: Ledger, wrong: Mapping[str, LeaseEntry]) -> bool:
    """Free these reservations, where they still are the same."""
    same = [key for key, entry in wrong.items() if ledger.leases.get(key) == entry]
    for key in same:
        del ledger.leases[key]
    return bool(same)


def _is_current(storage: Storage, record_uri: str, record: Record) -> bool:
    """True when no generation began since `record` was read: a slow process must not undo what that one asks."""
    now = RecordStore(storage, record_uri).read()
    return now is not None and now[0].generation == record.generation
