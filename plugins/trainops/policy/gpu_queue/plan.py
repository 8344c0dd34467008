"""The decision: whom to admit, and whom to ask to leave."""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from trainops.policy.gpu_queue.knobs import Knobs
from trainops.policy.gpu_queue.ranking import Rank, protected, rank
from trainops.policy.gpu_queue.request import Gpus, Request


@dataclass(frozen=True, kw_only=True, slots=True)
class Admission:
    """A request that gets its GPUs now."""

    job_key: str
    candidate: int
    """Which of its candidates."""
    gpus: Gpus
    probe: bool
    backfill: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Preemption:
    """A job that is asked to save its state and leave."""

    job_key: str
    makes_room_for: tuple[str, ...]
    """Job keys that wait for its GPUs; empty when a person asked."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QueuePlan:
    """What to do, and what `explain` needs to say why."""

    admissions: tuple[Admission, ...]
    preemptions: tuple[Preemption, ...]
    order: tuple[tuple[Request, Rank], ...]
    """All requests that may run, the best rank first."""
    granted: Mapping[str, Gpus]
    """What each request that is to run will hold, those that wait for others to leave included; of one that is asked to
    leave, what it goes on with elsewhere."""


@dataclass(slots=True)
class _Pools:
    """What is left of the pools while the plan is made."""

    quotas: Mapping[str, int]
    closed: Collection[str]
    room: dict[str, int]
    """GPUs that no request of a better rank is to hold."""
    free: dict[str, int]
    """GPUs that nobody holds at this moment."""
    overdue: dict[str, int] = field(default_factory=dict)
    """GPUs that overdue requests are to hold."""
    blocked: set[str] = field(default_factory=set)
    """Pools for which a request of a better rank waits."""

    def choice(self, request: Request) -> int | None:
        """The candidate that fits: one whose GPUs are free now, else one for which others must leave.

        For one that leaves itself nothing is free yet; then the first that fits is what it comes back to.
        """
        open_ones = [(number, gpus) for number, gpus in enumerate(request.candidates) if self._open(gpus)]
        for room in (self.free, self.room) if request.lease is None else (self.room,):
            for number, gpus in open_ones:
                if fits(gpus, room) and fits(gpus, self.room):
                    return number
        return None

    def take(self, gpus: Gpus, *, overdue: bool) -> None:
        for pool, count in gpus.items():
            self.room[pool] = self.room.get(pool, 0) - count
            if overdue:
                self.overdue[pool] = self.overdue.get(pool, 0) + count

    def block(self, request: Request) -> None:
        """Note the pools that a request waits for; one that never fits anywhere keeps nobody from anything."""
        for gpus in request.candidates:
            if self._open(gpus) and fits(gpus, self.quotas):
                self.blocked.update(gpus)

    def crowded(self, gpus: Gpus, share: float) -> bool:
        """True when overdue requests hold so much of a pool that another one lets the others try first."""
        for pool, count in gpus.items():
            held = self.overdue.get(pool, 0)
            if held and held + count > share * self.quotas.get(pool, 0):
                return True
        return False

    def _open(self, gpus: Gpus) -> bool:
        return not any(pool in self.closed for pool in gpus)


def plan(
    requests: Iterable[Request],
    quotas: Mapping[str, int],
    now: float,
    knobs: Knobs,
    *,
    closed: Collection[str] = (),
) -> QueuePlan:
    """Decide who holds the GPUs of all pools from now on.

    Requests take their place in the order of priority class and rank, a gang all of its GPUs or none; what is left goes
    to the next that fits. Running jobs that found no place are asked to leave. Applying a plan and planning again at
    the same moment changes nothing more, except that the GPUs of those who left may be admitted.

    :param quotas: accelerators by pool name.
    :param closed: pools that nobody is admitted to any more; who runs there stays.
    """
    everybody = list(requests)
    pools = _Pools(quotas=quotas, closed=closed, room=dict(quotas), free=_free(everybody, quotas))
    ordered = _ranked(everybody, knobs, now)
    granted = _keep_the_immovable(everybody, pools)
    admissions: list[Admission] = []
    displaced: set[str] = set()
    for _, group in groupby(ordered, key=lambda pair: pair[0].priority):
        admissions += _place(list(group), pools, granted, displaced, knobs, now)
    admitted = {item.job_key for item in admissions}
    return QueuePlan(
        admissions=tuple(admissions),
        preemptions=_preemptions([item for item, _ in ordered], granted, displaced, admitted),
        order=tuple(ordered),
        granted=granted,
    )


def fits(gpus: Gpus, room: Mapping[str, int]) -> bool:
    """True when every pool has room for all that is asked of it."""
    return all(count <= room.get(pool, 0) for pool, count in gpus.items())


def _free(requests: Iterable[Request], quotas: Mapping[str, int]) -> dict[str, int]:
    free = dict(quotas)
    for request in requests:
        for pool, count in (request.lease.gpus if request.lease else {}).items():
            free[pool] = free.get(pool, 0) - count
    return free


def _ranked(requests: Iterable[Request], knobs: Knobs, now: float) -> list[tuple[Request, Rank]]:
    """All that take part, the best first: not those that stay in any case, nor those that somebody keeps waiting."""
    taking_part = [item for item in requests if not _immovable(item) and not (item.held and item.lease is None)]
    return sorted(((item, rank(item, knobs, now)) for item in taking_part), key=lambda pair: pair[1].order(pair[0]))


def _immovable(request: Request) -> bool:
    return request.running and not request.preemptible


def _keep_the_immovable(requests: Iterable[Request], pools: _Pools) -> dict[str, Gpus]:
    kept = {item.job_key: item.lease.gpus for item in requests if item.lease is not None and _immovable(item)}
    for gpus in kept.values():
        pools.take(gpus, overdue=False)
    return kept


def _place(
    group: list[tuple[Request, Rank]], pools: _Pools, granted: dict[str, Gpus], displaced: set[str], knobs: Knobs,
    now: float,
) -> list[Admission]:  # fmt: skip
    """Give the requests of one priority class their place, and return those that are to start.

    Those that run and have found no place are added to `displaced`; they get another turn, among those who wait.
    """
    new = [pair for pair in group if protected(pair[0], knobs, now)]
    turns = [*new, *(pair for pair in group if not protected(pair[0], knobs, now))]
    late: list[tuple[Request, Rank]] = []
    admissions: list[Admission | None] = []

    def seat(request: Request, its: Rank, turns: list[tuple[Request, Rank]], first: int) -> None:
        admissions.append(_seat(request, its, pools, granted, knobs))
        if request.running and request.job_key not in granted:
            displaced.add(request.job_key)
            _come_back(request, turns, first, knobs, now)

    for turn, (request, its) in enumerate(turns, start=1):  # it grows while it is gone through
        if its.overdue and pools.crowded(_wanted(request), knobs.overdue_share):
            late.append((request, its))
        else:
            seat(request, its, turns, max(turn, len(new)))
    for turn, (request, its) in enumerate(late, start=1):
        seat(request, its, late, turn)
    return [item for item in admissions if item is not None]


def _come_back(request: Request, turns: list[tuple[Request, Rank]], first: int, knobs: Knobs, now: float) -> None:
    """Give one that is to leave its turn among those who wait: it may go on where its other candidates are.

    Else what it takes then would go to others now, and be taken from them at the next look.
    """
    assert request.lease is not None
    waits = replace(request, evicted="", lease=replace(request.lease, leaving=True))
    its = rank(waits, knobs, now)
    insort(turns, (waits, its), lo=first, key=lambda pair: pair[1].order(pair[0]))


def _wanted(request: Request) -> Gpus:
    return request.candidates[0] if request.lease is None else request.lease.gpus


def _seat(request: Request, its: Rank, pools: _Pools, granted: dict[str, Gpus], knobs: Knobs) -> Admission | None:
    """Grant a request its GPUs if they fit; an admission when it has none and they are free."""
    if request.running:
        assert request.lease is not None
        if not request.evicted and fits(request.lease.gpus, pools.room):
            pools.take(request.lease.gpus, overdue=its.overdue)
            granted[request.job_key] = request.lease.gpus
        else:
            pools.blocked.update(request.lease.gpus)
        return None
    number = pools.choice(request)
    if number is None:
        pools.block(request)
        return None
    gpus = request.candidates[number]
    pools.take(gpus, overdue=its.overdue)
    granted[request.job_key] = gpus
    if request.lease is not None or not fits(gpus, pools.free):
        return None
    for pool, count in gpus.items():
        pools.free[pool] -= count
    return Admission(
        job_key=request.job_key,
        candidate=number,
        gpus=gpus,
        probe=request.ran < knobs.report_after,
        backfill=not pools.blocked.isdisjoint(gpus),
    )


def _preemptions(
    requests: Sequence[Request], granted: Mapping[str, Gpus], displaced: Collection[str], admitted: Collection[str]
) -> tuple[Preemption, ...]:
    """All that run and found no place; each with those that wait for its GPUs."""
    waiting = [item.job_key for item in requests if not item.running or item.job_key in displaced]
    pending = [key for key in waiting if key in granted and key not in admitted]
    found = []
    for item in requests:
        if item.job_key in displaced:
            others = () if item.evicted else _sharing(item, pending, granted)
            # Where nobody waits for its GPUs a quota has shrunk: it stays, unless it can go on elsewhere.
            if others or item.evicted or item.job_key in granted:
                found.append(Preemption(job_key=item.job_key, makes_room_for=others))
    return tuple(found)


def _sharing(victim: Request, pending: Iterable[str], granted: Mapping[str, Gpus]) -> tuple[str, ...]:
    held = victim.lease.gpus if victim.lease else {}
    return tuple(key for key in pending if not granted[key].keys().isdisjoint(held))
