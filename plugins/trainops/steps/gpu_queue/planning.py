"""What the queue's objects mean to the policy: pure, from what was read to what is to be written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from trainops.config.queue_policy import QueuePolicy
from trainops.policy import gpu_queue
from trainops.steps.gpu_queue.ledger import LeaseEntry, Leaving, Ledger
from trainops.steps.gpu_queue.orders import JobOrders, PoolOrders
from trainops.steps.gpu_queue.requests import FoundRequest, QueueRequest

RESERVATION = timedelta(minutes=10)
"""How long an admitted job key may take to create its job before the GPUs go to somebody else."""

SILENCE = timedelta(minutes=15)
"""A request whose owner has not been heard of for so long keeps its age but is not admitted."""

RESTART_SECONDS = 420.0
"""What a start from a checkpoint costs: the steps since it, a machine, loading. As in the replayed traces."""


@dataclass(frozen=True, slots=True)
class View:
    """All that was read for one plan."""

    requests: Sequence[FoundRequest]
    jobs: Mapping[str, JobOrders]
    pools: Mapping[str, PoolOrders]
    now: datetime
    """The server's time."""

    @property
    def closed(self) -> frozenset[str]:
        """Pools that are drained."""
        return frozenset(name for name, orders in self.pools.items() if orders.drain is not None)

    def by_key(self) -> dict[str, QueueRequest]:
        """Requests by job key."""
        return {item.request.job_key: item.request for item in self.requests}


@dataclass(frozen=True)
class Made:
    """A plan, and what it was made of."""

    plan: gpu_queue.QueuePlan
    asked: tuple[gpu_queue.Request, ...]
    view: View


def knobs_of(policy: QueuePolicy) -> gpu_queue.Knobs:
    """The policy of the config, in seconds."""
    return gpu_queue.Knobs(
        report_after=policy.report_after_minutes * 60,
        probe_work=policy.probe_gpu_minutes * 60,
        boost=policy.boost,
        boost_shape=policy.boost_shape,
        full_boost_times=policy.full_boost_after_times,
        full_boost_least=policy.full_boost_least_hours * 3600,
        full_boost_after=policy.full_boost_after_hours * 3600,
        overdue_times=policy.overdue_after_times,
        overdue_least=policy.overdue_least_hours * 3600,
        overdue_after=policy.overdue_after_hours * 3600,
        overdue_share=policy.overdue_share,
        stickiness=policy.stickiness,
        preempted_again=policy.preempted_again,
        min_run=policy.min_run_minutes * 60,
        default_estimate=policy.default_estimate_hours * 3600,
    )


def make_plan(ledger: Ledger, view: View, quotas: Mapping[str, int], policy: QueuePolicy) -> Made:
    """Plan for everybody who asks for GPUs or holds some."""
    asked = tuple(asked_of(ledger, view, policy))
    made = gpu_queue.plan(asked, quotas, view.now.timestamp(), knobs_of(policy), closed=view.closed)
    return Made(made, asked, view)


def asked_of(ledger: Ledger, view: View, policy: QueuePolicy) -> list[gpu_queue.Request]:
    """Everybody, as the policy sees them."""
    found = {item.request.job_key: item for item in view.requests}
    asked = [_of_request(item, ledger.leases.get(key), view, policy) for key, item in found.items()]
    unasked = [_of_lease(key, entry) for key, entry in ledger.leases.items() if key not in found]
    return [*asked, *unasked]


def apply(ledger: Ledger, made: Made) -> bool:
    """Write a plan into the ledger; False when it changes nothing."""
    requests = made.view.by_key()
    for item in made.plan.admissions:
        request = requests[item.job_key]
        ledger.leases[item.job_key] = LeaseEntry(
            gpus=dict(item.gpus), state="reserved", admitted_at=made.view.now,
            reserved_until=made.view.now + RESERVATION, record=request.record, probe=item.probe, backfill=item.backfill,
        )  # fmt: skip
    for leaving in made.plan.preemptions:
        entry = ledger.leases[leaving.job_key]
        others = list(leaving.makes_room_for)
        order = made.view.jobs.get(leaving.job_key, JobOrders()).preempt
        room = (
            f"its GPUs are for {', '.join(others)}" if others else "its pool has become smaller; it goes on elsewhere"
        )
        why = str(order) if order is not None else room
        entry.leaving = Leaving(asked_at=made.view.now, makes_room_for=others, why=why)
    return bool(made.plan.admissions or made.plan.preemptions)


def _of_request(found: FoundRequest, entry: LeaseEntry | None, view: View, policy: QueuePolicy) -> gpu_queue.Request:
    request, orders = found.request, view.jobs.get(found.request.job_key, JobOrders())
    since = 0.0 if entry is None else (view.now - entry.admitted_at).total_seconds()
    silent = (view.now - found.updated).total_seconds()
    remaining = request.remaining_seconds
    if remaining is not None and entry is not None:
        remaining = max(0.0, remaining - silent)
    asked = gpu_queue.Request(
        job_key=request.job_key,
        candidates=_open(request, view) or (request.gpus,),
        arrived=(request.arrived or found.updated).timestamp(),
        priority=request.priority if orders.priority is None else orders.priority.priority,
        ran=request.ran_seconds + since,
        remaining=remaining,
        estimate=request.estimate_seconds,
        restart=RESTART_SECONDS if request.ran_seconds and entry is None else 0.0,
        preemptions=request.preemptions,
        preemptible=policy.preemption and request.preemptible and entry is not None and entry.state == "bound",
        lease=None if entry is None else _lease(entry),
    )
    if entry is None:
        return replace(asked, held=_held(found, orders, view))
    return replace(asked, evicted=str(orders.preempt) if orders.preempt is not None and asked.preemptible else "")


def _open(request: QueueRequest, view: View) -> tuple[dict[str, int], ...]:
    return tuple(choice.gpus for choice in request.choices if choice.is_open(view.now))


def _held(found: FoundRequest, orders: JobOrders, view: View) -> str:
    request = found.request
    if orders.hold is not None:
        return str(orders.hold)
    if not _open(request, view):
        until = min((item.not_before for item in request.choices if item.not_before is not None), default=None)
        return f"it pauses until {until:%H:%M:%S} UTC after its last attempt" if until else "its time for Spot is over"
    if view.now - found.updated > SILENCE:
        return f"its owner was last heard of at {found.updated:%Y-%m-%d %H:%M} UTC"
    return ""


def _of_lease(key: str, entry: LeaseEntry) -> gpu_queue.Request:
    """A lease whose request is gone, or of another version: it stays as long as its job."""
    moment = entry.admitted_at.timestamp()
    return gpu_queue.Request(
        job_key=key, candidates=(entry.gpus,), arrived=moment, preemptible=False, lease=_lease(entry)
    )


def _lease(entry: LeaseEntry) -> gpu_queue.Lease:
    return gpu_queue.Lease(
        gpus=entry.gpus, since=entry.admitted_at.timestamp(), probe=entry.probe, backfill=entry.backfill,
        leaving=entry.leaving is not None,
    )  # fmt: skip
