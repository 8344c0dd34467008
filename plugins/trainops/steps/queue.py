"""The GPU queue in object storage: one ledger, swapped by generation; one request object per job key.

Anybody may tick: read requests and ledger, let `policy.gpu_queue.plan` decide, and swap the ledger. A lease is
*reserved* with a deadline when admitted and *bound* to a job once that exists. A lease lives as long as its job: the
tick frees only reservations whose deadline passed; everything else is freed by whoever saw the job end.
Time is the server's, read from the objects that it stamps.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trainops import naming
from trainops.config.gpu_pools import GpuPools
from trainops.errors import ConfigError, IntegrityError, WriteConflict
from trainops.gcp.storage import Storage
from trainops.policy import gpu_queue
from trainops.policy.lifecycle import Lease
from trainops.policy.record import Record
from trainops.steps.record_store import RecordStore

RESERVATION = timedelta(minutes=10)
"""How long an admitted job key may take to create its job before the GPUs go to somebody else."""

SILENCE = timedelta(minutes=15)
"""A request whose owner has not been heard of for so long keeps its age but is not admitted."""

REFRESH_SECONDS = 60.0
"""How often an owner that waits says that it is still there."""

RACES = 30

M = TypeVar("M", bound=BaseModel)


class LeaseEntry(BaseModel):
    """GPUs held by one job key."""

    model_config = ConfigDict(extra="forbid")

    gpus: dict[str, int] = Field(description="GPUs by pool.")
    state: Literal["reserved", "bound"] = Field(description="Reserved until a job exists, then bound to it.")
    admitted_at: datetime = Field(description="Server time of the admission.")
    reserved_until: datetime = Field(description="A reservation that is not bound by then is freed.")
    job_name: str | None = Field(default=None, description="The job it is bound to.")
    record: str = Field(description="URI of the job key's record.")


class Ledger(BaseModel):
    """All pools and leases: the one object that admissions swap."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    kind: Literal["trainops.ledger"] = Field(default="trainops.ledger", description="Tells it from other objects.")
    schema_number: Literal[1] = Field(default=1, alias="schema", description="Version of this layout.")
    write_id: str = Field(default="", description="New at every write, so that a writer knows its own.")
    quotas_hash: str = Field(default="", description="Deployments that share a ledger must agree on quotas.")
    quotas: dict[str, int] = Field(default_factory=dict, description="GPUs by pool.")
    leases: dict[str, LeaseEntry] = Field(default_factory=dict, description="Leases by job key.")
    reasons: dict[str, str] = Field(default_factory=dict, description="Why each request waits.")


class QueueRequest(BaseModel):
    """A job key's request, written only by its owner."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    kind: Literal["trainops.request"] = Field(default="trainops.request", description="Tells it from others.")
    job_key: str = Field(description="Who asks.")
    gpus: dict[str, int] = Field(description="GPUs by pool.")
    priority: int = Field(default=0, description="Priority class.")
    record: str = Field(description="URI of the job key's record.")
    arrived: datetime | None = Field(default=None, description="Server time of the first write; kept when refreshed.")


class GpuQueue:
    """Places in the queue, and the ledger that says who holds GPUs."""

    def __init__(self, storage: Storage, work: str, pools: GpuPools) -> None:
        self.storage = storage
        self.work = work
        self.pools = pools
        self.quotas = pools.quotas()
        self.unread: list[str] = []
        """What stood among the requests at the last look and is none, one sentence each; it is left alone."""
        self._refreshed: dict[str, float] = {}

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

        Only a reservation of what the record's generation asks for counts: a clear may ask for other GPUs than the
        generation before, whose request or reservation still stands.

        :raises ConfigError: when no quota can ever hold the request.
        """
        key, wanted = record.job_key, self.pools.names(record.accelerators, record.region, record.provisioning)
        entry = self._read()[0].leases.get(key)
        if entry is not None and _fits(entry, wanted):
            return Lease(state=entry.state)
        if entry is not None and _is_current(self.storage, record_uri, record):
            self._give_back(key, entry)
        if not self._keep_asking(record, record_uri):
            return Lease(state="none")
        ledger = self.tick()
        entry = ledger.leases.get(key)
        if entry is not None and _fits(entry, wanted):
            return Lease(state=entry.state)
        return Lease(state="waiting", reason=ledger.reasons.get(key, "it waits for the next look at the queue"))

    def bind(self, job_key: str, job_name: str) -> bool:
        """Tie the lease to the job that now exists; False when there is no lease any more."""

        def bound(ledger: Ledger) -> bool:
            entry = ledger.leases.get(job_key)
            if entry is None or entry.job_name == job_name:
                return False
            entry.state, entry.job_name = "bound", job_name
            return True

        return job_key in self._swap(bound).leases

    def hold(self, record: Record, record_uri: str, job_name: str) -> None:
        """Make the ledger say that a job that lives holds its GPUs, whatever became of its reservation.

        Its bind may have been missed by a crash. More than the quota may be held then, until one of the jobs has ended.
        """
        gpus = self.pools.names(record.accelerators, record.region, record.provisioning)

        def held(ledger: Ledger) -> bool:
            entry = ledger.leases.get(record.job_key)
            if entry is not None and entry.job_name == job_name:
                return False
            since = record.opened_at if entry is None else entry.admitted_at
            ledger.leases[record.job_key] = LeaseEntry(
                gpus=gpus, state="bound", admitted_at=since, reserved_until=since, job_name=job_name, record=record_uri
            )
            return True

        self._swap(held)

    def release(self, job_key: str) -> None:
        """Give the GPUs back and leave the queue; releasing twice changes nothing."""
        self.storage.delete(naming.request_uri(self.work, job_key))
        self._swap(lambda ledger: ledger.leases.pop(job_key, None) is not None)

    def tick(self) -> Ledger:
        """Admit whom the plan admits, in one swap."""
        requests, now = self._requests()
        uris = {request.job_key: request for request in requests}
        admitted: set[str] = set()

        def ticked(ledger: Ledger) -> bool:
            admitted.clear()
            expired = [
                key for key, item in ledger.leases.items() if item.state == "reserved" and item.reserved_until < now
            ]
            for key in expired:
                del ledger.leases[key]
            holdings = [gpu_queue.Holding(job_key=key, gpus=item.gpus) for key, item in ledger.leases.items()]
            wanting = [_to_plan(item, now) for item in requests if item.job_key not in ledger.leases]
            result = gpu_queue.plan(wanting, holdings, self.quotas)
            for key in result.admissions:
                ledger.leases[key] = _reserved(uris[key], now)
                admitted.add(key)
            changed = bool(expired or result.admissions) or dict(result.reasons) != ledger.reasons
            ledger.reasons = dict(result.reasons)
            return changed

        ledger = self._swap(ticked)
        gone = {key for key in admitted if not self.storage.exists(naming.request_uri(self.work, key))}
        return self._swap(lambda ledger: _take_back(ledger, gone)) if gone else ledger

    def snapshot(self) -> tuple[Ledger, list[QueueRequest]]:
        """Ledger and requests as they are, for people who look."""
        return self._read()[0], self._requests()[0]

    def _request(self, record: Record, record_uri: str) -> QueueRequest:
        """What a record's generation asks for.

        :raises ConfigError: when no quota can ever hold it.
        """
        gpus = self.pools.ask(record.accelerators, record.region, record.provisioning)
        return QueueRequest(job_key=record.job_key, gpus=gpus, priority=record.priority, record=record_uri)

    def _keep_asking(self, record: Record, record_uri: str) -> bool:
        """Say that the owner still waits, and for what; False when there is no request.

        :raises ConfigError: when no quota can ever hold what it waits for now; the request is gone then.
        """
        uri = naming.request_uri(self.work, record.job_key)
        found = self.storage.read_json(uri)
        if found is None:
            return False
        stands = _parse(QueueRequest, uri, found.value)
        stands.arrived = stands.arrived or self._written_at(uri)
        asked = self._changed(stands, record, record_uri)
        if asked is None and time.monotonic() - self._refreshed.get(uri, float("-inf")) < REFRESH_SECONDS:
            return True
        self._refreshed[uri] = time.monotonic()
        with contextlib.suppress(WriteConflict):  # released, or written by another process of the same owner
            self._write(asked or stands, generation=found.generation)
        return True

    def _changed(self, stands: QueueRequest, record: Record, record_uri: str) -> QueueRequest | None:
        """The request that takes the place of one that an earlier generation wrote; None when it may stand.

        One that asks for no more keeps its age: whoever came later waits no longer for it than for the one before. One
        that asks for more, or of another pool, is as old as this moment, else a place could be kept with a small one.
        """
        gpus = self.pools.names(record.accelerators, record.region, record.provisioning)
        if (stands.gpus, stands.priority) == (gpus, record.priority):
            return None
        if not _is_current(self.storage, record_uri, record):
            return None
        try:
            asked = self._request(record, record_uri)
        except ConfigError:
            self.release(record.job_key)
            raise
        more = any(count > stands.gpus.get(pool, 0) for pool, count in gpus.items())
        return asked.model_copy(update={"arrived": None if more else stands.arrived})

    def _written_at(self, uri: str) -> datetime | None:
        info = self.storage.info(uri)
        return None if info is None else info.updated

    def _write(self, request: QueueRequest, *, generation: int) -> None:
        uri = naming.request_uri(self.work, request.job_key)
        self.storage.write_json(uri, request.model_dump(mode="json"), generation=generation)

    def _give_back(self, job_key: str, wrong: LeaseEntry) -> None:
        """Free a reservation that was made for what an earlier generation asked."""

        def freed(ledger: Ledger) -> bool:
            if ledger.leases.get(job_key) != wrong:
                return False
            del ledger.leases[job_key]
            return True

        self._swap(freed)

    def _requests(self) -> tuple[list[QueueRequest], datetime]:
        """Requests whose owners are heard of, and the newest server time among them.

        An object that is no request stops nobody else's: its own owner is told when it looks, housekeeping in any case.
        """
        found: list[tuple[QueueRequest, datetime]] = []
        unread: list[str] = []
        for info in self.storage.list(f"{self.work}/queue/requests/"):
            try:
                document = self.storage.read_json(info.uri)
                if document is None:
                    continue  # released since the list
                request = _parse(QueueRequest, info.uri, document.value)
            except IntegrityError as error:
                unread.append(str(error))
                continue
            found.append((request.model_copy(update={"arrived": request.arrived or info.updated}), info.updated))
        self.unread = unread
        now = max((updated for _, updated in found), default=datetime.fromisoformat("1970-01-01T00:00:00+00:00"))
        return [request for request, updated in found if now - updated <= SILENCE], now

    def _read(self) -> tuple[Ledger, int]:
        uri = naming.ledger_uri(self.work)
        found = self.storage.read_json(uri)
        if found is None:
            return Ledger(quotas=self.quotas, quotas_hash=naming.fingerprint(self.quotas)), 0
        ledger = _parse(Ledger, uri, found.value)
        if ledger.leases and ledger.quotas_hash != naming.fingerprint(self.quotas):
            raise ConfigError(
                "these quotas differ from those of the deployment that holds leases in the same ledger",
                source="gpu_pools.yaml", key="pools", value=self.quotas, allowed=[str(ledger.quotas)],
                next_step=f"make the files equal, or wait until the leases in {uri} have ended",
            )  # fmt: skip
        return ledger.model_copy(
            update={"quotas": self.quotas, "quotas_hash": naming.fingerprint(self.quotas)}
        ), found.generation

    def _swap(self, change: Callable[[Ledger], bool]) -> Ledger:
        uri = naming.ledger_uri(self.work)
        for _ in range(RACES):
            ledger, generation = self._read()
            ledger = ledger.model_copy(deep=True)
            if not change(ledger):
                return ledger
            ledger.write_id = uuid.uuid4().hex
            try:
                self.storage.write_json(uri, ledger.model_dump(mode="json", by_alias=True), generation=generation)
            except WriteConflict:
                continue
            return ledger
        raise WriteConflict(f"{uri}: lost {RACES} races in a row", status=412)


def _fits(entry: LeaseEntry, wanted: dict[str, int]) -> bool:
    """True of a reservation of what is wanted, and of any lease that has a job: what that holds, it holds."""
    return entry.state == "bound" or entry.gpus == wanted


def _take_back(ledger: Ledger, gone: set[str]) -> bool:
    """Free reservations of requests that were released after they had been listed: nobody else ever would use them."""
    mine = [key for key in gone if key in ledger.leases and ledger.leases[key].state == "reserved"]
    for key in mine:
        del ledger.leases[key]
    return bool(mine)


def _is_current(storage: Storage, record_uri: str, record: Record) -> bool:
    """True when no generation began since `record` was read: a slow process must not undo what that one asks."""
    now = RecordStore(storage, record_uri).read()
    return now is not None and now[0].generation == record.generation


def _to_plan(request: QueueRequest, now: datetime) -> gpu_queue.Request:
    arrived = request.arrived or now
    return gpu_queue.Request(job_key=request.job_key, gpus=request.gpus, arrived=arrived, priority=request.priority)


def _reserved(request: QueueRequest, now: datetime) -> LeaseEntry:
    until = now + RESERVATION
    return LeaseEntry(gpus=request.gpus, state="reserved", admitted_at=now, reserved_until=until, record=request.record)


def _parse(model: type[M], uri: str, value: Any) -> M:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise IntegrityError(
            f"{uri}: not an object of this version; it is left alone ({error.errors()[0]['msg']})"
        ) from error
