"""One sentence for every request: its rank, what it waits for, who holds that, and when it will probably start."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from trainops.policy.gpu_queue.knobs import Knobs
from trainops.policy.gpu_queue.plan import QueuePlan, fits
from trainops.policy.gpu_queue.ranking import Rank
from trainops.policy.gpu_queue.request import Gpus, Request

HOLDERS = 3
"""Holders of a pool that are named; of the others only the number is told."""

GUESS_SPREAD = math.sqrt(math.e - 1)
"""Standard deviation of a job's length before it reports, relative to what was said of it: a lognormal error of 1."""

REPORT_SPREAD = 0.05
"""The same after it reports."""


def explain(
    made: QueuePlan, requests: Iterable[Request], quotas: Mapping[str, int], knobs: Knobs, *, closed: Iterable[str] = ()
) -> dict[str, str]:
    """Say of every request why it starts, runs, leaves or waits.

    :param requests: those that the plan was made of, and `quotas`, `knobs`, `closed` as well.
    """
    everybody = list(requests)
    teller = _Teller(made, everybody, quotas, knobs, frozenset(closed))
    ranked = {item.job_key for item, _ in made.order}
    told = {item.job_key: teller.of_unranked(item) for item in everybody if item.job_key not in ranked}
    return told | dict(teller.of_ranked())


@dataclass(frozen=True, slots=True)
class Outlook:
    """When a request will probably start: seconds from now, and how far off that may be."""

    seconds: float
    spread: float

    def __str__(self) -> str:
        least, most = max(0.0, self.seconds - self.spread), self.seconds + self.spread
        return f"probably starts in {duration(self.seconds)} ({duration(least)} to {duration(most)})"


class _Teller:
    """Tells of one plan; goes through the ranks once, adding up the work that lies before each."""

    def __init__(
        self, made: QueuePlan, requests: list[Request], quotas: Mapping[str, int], knobs: Knobs, closed: frozenset[str]
    ) -> None:
        self._made, self._quotas, self._knobs, self._closed = made, quotas, knobs, closed
        self._admitted = {item.job_key: item for item in made.admissions}
        self._leaving = {item.job_key: item for item in made.preemptions}
        self._holders = _holders(requests)
        self._free = {pool: quotas[pool] - sum(count for _, count in self._holders.get(pool, ())) for pool in quotas}
        self._work = dict.fromkeys(quotas, 0.0)
        self._variance = dict.fromkeys(quotas, 0.0)
        for item in requests:
            if item.running and item.job_key in made.granted and item.job_key not in self._leaving:
                self._add(item, made.granted[item.job_key])

    def of_unranked(self, request: Request) -> str:
        """Of one that runs and stays, or that somebody keeps from starting."""
        if request.lease is not None:
            return f"runs on {counts(request.lease.gpus)}, and stays: it cannot save its state when asked"
        return f"held: {request.held}"

    def of_ranked(self) -> Iterator[tuple[str, str]]:
        """Of all others, the best rank first."""
        total = len(self._made.order)
        for place, (request, its) in enumerate(self._made.order, start=1):
            yield request.job_key, f"rank {place} of {total}: {self._sentence(request, its)}"
            if not request.running:
                self._add(request, self._made.granted.get(request.job_key, request.candidates[0]))

    def _sentence(self, request: Request, its: Rank) -> str:
        if request.lease is not None:
            return self._of_holder(request)
        if request.job_key in self._admitted:
            admitted = self._admitted[request.job_key]
            past = ", while requests of a better rank do not fit" if admitted.backfill else ""
            return f"starts on {counts(admitted.gpus)}{past}"
        if request.job_key in self._made.granted:
            return f"gets {counts(self._made.granted[request.job_key])} as soon as those who were asked have left"
        return f"{self._lacking(request)}; {self._standing(request, its)}; {self.outlook(request)}"

    def _of_holder(self, request: Request) -> str:
        assert request.lease is not None
        held = counts(request.lease.gpus)
        if request.lease.leaving:
            return f"was asked to leave {held}; it goes on later from what it saves"
        preemption = self._leaving.get(request.job_key)
        if preemption is None:
            return f"runs on {held}"
        if request.evicted:
            return f"is asked to leave {held}: {request.evicted}"
        return f"is asked to leave {held}, for {_names(preemption.makes_room_for)}"

    def _lacking(self, request: Request) -> str:
        return " or ".join(self._lacking_of(gpus) for gpus in request.candidates)

    def _lacking_of(self, gpus: Gpus) -> str:
        for pool, count in gpus.items():
            if pool in self._closed:
                return f"needs {count} x {pool}, which is drained: nobody is admitted there"
            if count > self._quotas.get(pool, 0):
                return f"needs {count} x {pool}, whose quota is {self._quotas.get(pool, 0)}: it can never start there"
        pool, count = next(((p, c) for p, c in gpus.items() if not fits({p: c}, self._free)), next(iter(gpus.items())))
        held = self._held(pool)
        return f"needs {count} x {pool}, {max(0, self._free[pool])} of {self._quotas[pool]} are free{held}"

    def _held(self, pool: str) -> str:
        holders = self._holders.get(pool, [])
        if not holders:
            return ""
        named = ", ".join(f"{key} holds {count}" for key, count in holders[:HOLDERS])
        return f" ({named}{f', {len(holders) - HOLDERS} more hold the rest' if len(holders) > HOLDERS else ''})"

    def _standing(self, request: Request, its: Rank) -> str:
        knobs = self._knobs
        if its.overdue:
            return f"overdue after waiting {duration(its.waited)}"
        if request.ran < knobs.report_after:
            work = "not run yet"
        else:
            work = f"{request.left(knobs.default_estimate) * request.gpus / 3600:,.1f} GPU-h left"
        full, top = duration(its.full_boost_at), duration(its.overdue_at)
        return f"{work}, boost {its.boost:.1f} after waiting {duration(its.waited)} (full at {full}, overdue at {top})"

    def outlook(self, request: Request) -> Outlook:
        """When it starts if all that stands before it is done first, over the whole of its best pool."""
        return min((self._outlook_of(gpus) for gpus in request.candidates), key=lambda item: item.seconds)

    def _outlook_of(self, gpus: Gpus) -> Outlook:
        pools = [pool for pool in gpus if self._quotas.get(pool)]
        if len(pools) < len(gpus) or not pools:
            return Outlook(math.inf, 0.0)
        slowest = max(pools, key=lambda pool: self._work[pool] / self._quotas[pool])
        quota = self._quotas[slowest]
        return Outlook(self._work[slowest] / quota, math.sqrt(self._variance[slowest]) / quota)

    def _add(self, request: Request, gpus: Gpus) -> None:
        left = request.left(self._knobs.default_estimate)
        spread = GUESS_SPREAD if request.remaining is None else REPORT_SPREAD
        for pool, count in gpus.items():
            if pool in self._work:
                self._work[pool] += left * count
                self._variance[pool] += (left * count * spread) ** 2


def counts(gpus: Gpus) -> str:
    """GPUs in words."""
    return " and ".join(f"{count} x {pool}" for pool, count in gpus.items())


def duration(seconds: float) -> str:
    """A time in the two largest units that matter."""
    if math.isinf(seconds):
        return "no time that can be told"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 72 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"


def _holders(requests: Iterable[Request]) -> dict[str, list[tuple[str, int]]]:
    held: dict[str, list[tuple[str, int]]] = {}
    for item in requests:
        for pool, count in (item.lease.gpus if item.lease else {}).items():
            held.setdefault(pool, []).append((item.job_key, count))
    return {pool: sorted(entries, key=lambda entry: (-entry[1], entry[0])) for pool, entries in held.items()}


def _names(keys: tuple[str, ...]) -> str:
    if not keys:
        return "others"
    return ", ".join(keys[:HOLDERS]) + (f" and {len(keys) - HOLDERS} more" if len(keys) > HOLDERS else "")
