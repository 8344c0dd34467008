"""What people ask of the queue: one object per job key or pool, with who and when."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field

from trainops import naming
from trainops.errors import WriteConflict
from trainops.gcp.storage import Storage
from trainops.steps.gpu_queue.parsing import KnownObjects, parse

RACES = 10

Orders = TypeVar("Orders", "JobOrders", "PoolOrders")

Kind = Literal["priority", "hold", "preempt"]
"""What may be ordered of a job key."""


class Order(BaseModel):
    """One thing that somebody asked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    by: str = Field(description="Who.")
    at: datetime = Field(description="When, by the clock of whoever asked.")
    why: str = Field(default="", description="Why, in their words.")

    def __str__(self) -> str:
        return f"{self.by}, {self.at:%Y-%m-%d %H:%M} UTC" + (f": {self.why}" if self.why else "")


class PriorityOrder(Order):
    """Another priority class."""

    priority: int = Field(ge=0, le=100, description="The class that counts instead of the request's.")


class JobOrders(BaseModel):
    """What stands ordered for a job key; the object of the next order of a kind takes its place."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    priority: PriorityOrder | None = Field(default=None, description="Counts instead of the request's priority.")
    hold: Order | None = Field(default=None, description="Keeps it from starting until it is released.")
    preempt: Order | None = Field(default=None, description="Makes room, once; taken away when it was asked to.")
    history: tuple[str, ...] = Field(
        default=(), description="Orders that were replaced, carried out or taken back, oldest first."
    )

    def ordered(self, kind: Kind, order: Order) -> JobOrders:
        """The orders with another one of that kind; the history tells of the one whose place it takes."""
        history = (*self.history, *_said(kind, getattr(self, kind)))
        return self.model_copy(update={kind: order, "history": history})

    def left(self) -> JobOrders:
        """The orders once the job was asked to make room: that counts once, and stands in the history from now on."""
        return self.model_copy(update={"preempt": None, "history": (*self.history, *_said("preempt", self.preempt))})

    def released(self, by: Order) -> JobOrders:
        """Nothing stands ordered any more; the history tells of what did."""
        stood = (line for kind in get_args(Kind) for line in _said(kind, getattr(self, kind)))
        return JobOrders(history=(*self.history, *stood, f"released by {by}"))


class PoolOrders(BaseModel):
    """What stands ordered for a pool."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    drain: Order | None = Field(default=None, description="Nobody is admitted there; who runs there stays.")
    history: tuple[str, ...] = Field(default=(), description="Orders that were replaced or taken back, oldest first.")

    def drained(self, order: Order) -> PoolOrders:
        """The pool admits nobody; the history tells of the drain whose place this one takes."""
        return PoolOrders(drain=order, history=(*self.history, *_said("drain", self.drain)))

    def released(self, by: Order) -> PoolOrders:
        """The pool is open; the history tells who drained it."""
        return PoolOrders(history=(*self.history, *_said("drain", self.drain), f"released by {by}"))


class OrderStore:
    """Reads all orders, and changes one with a generation match."""

    def __init__(self, storage: Storage, work: str) -> None:
        self._storage = storage
        self._work = work
        pools = naming.pool_orders_folder(work)
        self._objects: KnownObjects[JobOrders | PoolOrders] = KnownObjects(
            storage, naming.orders_folder(work), lambda uri: PoolOrders if uri.startswith(pools) else JobOrders
        )

    @property
    def unread(self) -> list[str]:
        """What stood among the orders at the last look and is none; it is left alone."""
        return self._objects.unread

    def all(self) -> tuple[dict[str, JobOrders], dict[str, PoolOrders]]:
        """The orders by job key, and those by pool."""
        jobs, pools = naming.job_orders_folder(self._work), naming.pool_orders_folder(self._work)
        known = {info.uri.removesuffix(".json"): orders for info, orders in self._objects.look()}
        return (
            {uri.removeprefix(jobs): item for uri, item in known.items() if isinstance(item, JobOrders)},
            {uri.removeprefix(pools): item for uri, item in known.items() if isinstance(item, PoolOrders)},
        )

    def change_job(self, job_key: str, change: Callable[[JobOrders], JobOrders]) -> JobOrders:
        """Change what stands ordered for a job key.

        :raises WriteConflict: after many lost races.
        """
        return self._change(JobOrders, naming.job_order_uri(self._work, job_key), change)

    def change_pool(self, pool: str, change: Callable[[PoolOrders], PoolOrders]) -> PoolOrders:
        """Change what stands ordered for a pool.

        :raises WriteConflict: after many lost races.
        """
        return self._change(PoolOrders, naming.pool_order_uri(self._work, pool), change)

    def forget(self, job_key: str) -> None:
        """Remove the orders of a job key that has ended; its record tells of them."""
        self._storage.delete(naming.job_order_uri(self._work, job_key))

    def _change(self, kind: type[Orders], uri: str, change: Callable[[Orders], Orders]) -> Orders:
        for _ in range(RACES):
            found = self._storage.read_json(uri)
            before = kind() if found is None else parse(kind, uri, found.value)
            after = change(before)
            if after == before:
                return after
            try:
                generation = 0 if found is None else found.generation
                self._storage.write_json(uri, after.model_dump(mode="json"), generation=generation)
            except WriteConflict:
                continue
            return after
        raise WriteConflict(f"{uri}: lost {RACES} races in a row", status=412)


def _said(kind: str, order: Order | None) -> tuple[str, ...]:
    return () if order is None else (f"{kind} by {order}",)
