"""What a translated job costs per hour, by the price list of `tables.prices`. Pure; rounded only where it is shown.

Boot disks are counted. Jobs of other regions get the list's prices, marked as such: a near figure helps more than none.
A pool without a price makes the total unknown; it is never left out of a sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from trainops.jobspec.pool_cost import FREE, Basis, PoolCost, Rate, pool_cost
from trainops.jobspec.tables import prices
from trainops.jobspec.wire import seconds

__all__ = ["Basis", "JobCost", "PoolCost", "Rate", "job_cost"]

NOT_INCLUDED = ("tax", "discounts", "network traffic", "storage", "logs")
"""What no estimate counts."""

_DEFAULT_TIMEOUT = Decimal(7 * 24)
_SECONDS_PER_HOUR = 3600
_BASES: dict[str, Basis] = {"STANDARD": "on_demand", "SPOT": "spot"}


@dataclass(frozen=True)
class JobCost:
    """What a job costs per hour while all its machines run.

    :param region: region of the job.
    :param pools: pools of the custom job, or of one trial.
    :param basis: which price the job pays; None when neither is its price.
    :param no_basis: why `basis` is None; empty otherwise.
    :param timeout_hours: after which Vertex AI ends the job, or the trial.
    :param trials: all trials of a tuning job; 1 for a custom job.
    :param parallel_trials: trials that run at once; 1 for a custom job.
    """

    region: str
    pools: tuple[PoolCost, ...]
    basis: Basis | None
    no_basis: str
    timeout_hours: Decimal
    trials: int = 1
    parallel_trials: int = 1
    currency: str = prices.CURRENCY
    list_date: str = prices.DATE
    list_region: str = prices.REGION
    source: str = prices.SOURCE

    @property
    def trial(self) -> Rate:
        """All pools: one custom job, or one trial."""
        return sum((pool.rate for pool in self.pools), FREE)

    @property
    def rate(self) -> Rate:
        """All that runs at once."""
        return self.trial * self.parallel_trials

    @property
    def per_hour(self) -> Decimal | None:
        """What this job pays, by its strategy; None: see `unknown`."""
        return self.rate.on(self.basis)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Why there is no price, or none that this job pays; empty when `per_hour` is known."""
        unpriced = dict.fromkeys(pool.unpriced for pool in self.pools if pool.unpriced)
        return (*unpriced, *([self.no_basis] if self.no_basis else []))

    @property
    def not_included(self) -> tuple[str, ...]:
        """What the price leaves out."""
        return (*dict.fromkeys(pool.not_counted for pool in self.pools if pool.not_counted), *NOT_INCLUDED)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What makes the price uncertain."""
        elsewhere = f"these are prices of {self.list_region}: the list has none of {self.region}, where they may differ"
        found = [elsewhere] if self.region != self.list_region else []
        return (*found, *dict.fromkeys(doubt for pool in self.pools for doubt in pool.doubts))

    def at_most(self, hours: Decimal) -> Decimal | None:
        """Return what the job pays for `hours` of all that runs at once; None when the price is unknown."""
        return None if self.per_hour is None else self.per_hour * hours

    def until_timeout(self) -> Decimal | None:
        """Return what the job pays when it, or each of its trials, runs until Vertex AI ends it; None when unknown."""
        rate = self.trial.on(self.basis)
        return None if rate is None else rate * self.trials * self.timeout_hours


def job_cost(job: Mapping[str, Any], region: str) -> JobCost:
    """Return the cost of a CustomJob or HyperparameterTuningJob in REST JSON, as `translate` makes it.

    :param region: region that the job is sent to.
    """
    spec = job["trialJobSpec"] if "trialJobSpec" in job else job["jobSpec"]
    scheduling = spec.get("scheduling", {})
    no_basis = _no_basis(spec)
    timeout = scheduling.get("timeout")
    return JobCost(
        region=region,
        pools=tuple(pool_cost(index, pool) for index, pool in enumerate(spec["workerPoolSpecs"]) if pool),
        basis=None if no_basis else _BASES[scheduling.get("strategy", "STANDARD")],
        no_basis=no_basis,
        timeout_hours=_DEFAULT_TIMEOUT if timeout is None else seconds(timeout) / _SECONDS_PER_HOUR,
        trials=int(job.get("maxTrialCount", 1)),
        parallel_trials=int(job.get("parallelTrialCount", 1)),
    )


def _no_basis(spec: Mapping[str, Any]) -> str:
    """Say why the job pays neither the on-demand nor the Spot price; empty when it pays one of them."""
    strategy = spec.get("scheduling", {}).get("strategy", "STANDARD")
    if spec.get("persistentResourceId"):
        return "the job runs on a persistent resource, whose machines are paid whether it runs or not"
    affinities = [pool["machineSpec"].get("reservationAffinity", {}) for pool in spec["workerPoolSpecs"] if pool]
    if any(found.get("reservationAffinityType", "NO_RESERVATION") != "NO_RESERVATION" for found in affinities):
        return "machines of a reservation are paid by its own terms"
    return "" if strategy in _BASES else f"the price list has no {strategy} prices"
