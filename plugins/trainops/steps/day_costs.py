"""What an owner's runs of a day cost: one object per owner and UTC day, changed with a generation match.

A run is entered with what it will probably cost when it starts, and with what it did cost when it has ended. It counts
for the day on which it started, whatever day's data it reads.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from trainops import naming
from trainops.config.gpu_pools import GpuPools
from trainops.config.plan import RunPlan
from trainops.errors import ConfigError
from trainops.gcp.storage import Storage
from trainops.policy.record import Record
from trainops.policy.spending import spent_usd
from trainops.steps.stored_json import change_model


class RunCost(BaseModel):
    """What one run costs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    paid: float = Field(default=0.0, description="US dollars that its jobs did cost, by the price list.")
    planned: float = Field(default=0.0, description="US dollars that those will probably cost which are not known yet.")


class DayCosts(BaseModel):
    """What the runs of an owner cost which started in a day."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    kind: Literal["trainops.day-costs"] = Field(default="trainops.day-costs", description="Tells it from others.")
    schema_number: Literal[1] = Field(default=1, alias="schema", description="Version of this layout.")
    owner: str = Field(description="Who answers for the runs.")
    runs: dict[str, RunCost] = Field(default_factory=dict, description="By run key.")

    def with_run(self, run_key: str, cost: RunCost) -> DayCosts:
        """The costs with those of a run, in the place of what was said of it before."""
        return self.model_copy(update={"runs": {**self.runs, run_key: cost}})

    @property
    def usd(self) -> float:
        """All runs together."""
        return sum(run.paid + run.planned for run in self.runs.values())


class DayCostsStore:
    """Enters runs, before they cost anything and after they did."""

    def __init__(self, storage: Storage, work: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._storage = storage
        self._work = work
        self._now = now

    def enter(self, plan: RunPlan, pools: GpuPools) -> str:
        """Enter a run that is about to start, and tell what its owner's day comes to; empty without a cap.

        Entering it again changes its own figure only.

        :raises ConfigError: with it the owner's runs of the day would cost more than they may.
        """
        cap = pools.cap_of(plan.owner)
        if cap is None:
            return ""
        uri = naming.day_costs_uri(self._work, self._now().astimezone(UTC).date(), plan.owner)
        usd = plan.planned_usd or 0.0

        def entered(costs: DayCosts) -> DayCosts:
            # A run that is cleared begins anew, and what it has cost stays paid.
            paid = costs.runs.get(plan.run_key, RunCost()).paid
            before = costs.with_run(plan.run_key, RunCost(paid=paid))
            if before.usd + usd > cap.usd_per_day:
                raise ConfigError(
                    f"the runs of {plan.owner} that started today (UTC) cost {before.usd:,.2f} USD by the price list, "
                    f"and this one would cost {usd:,.2f} USD", source=pools.source,
                    key=f"caps.{pools.caps.index(cap)}.usd_per_day", value=cap.usd_per_day,
                    next_step="wait for tomorrow, make the run cheaper, or have the cap raised",
                )  # fmt: skip
            return costs.with_run(plan.run_key, RunCost(paid=paid, planned=usd))

        costs = change_model(self._storage, uri, DayCosts(owner=plan.owner), entered)
        self._storage.write_json(self._pointer(plan.experiment, plan.run_key), {"costs": uri}, generation=None)
        known = "" if plan.planned_usd is not None else ", the price of this one not known"
        return f"the runs of {plan.owner} cost {costs.usd:,.2f} of {cap.usd_per_day:,.2f} USD today{known}"

    def settle(self, experiment: str, run_key: str, records: list[Record]) -> None:
        """Put what a run's jobs did cost in the place of what was planned; nothing when it was never entered."""
        pointer = self._storage.read_json(self._pointer(experiment, run_key))
        if pointer is None:
            return
        usd = sum(_spent(record, self._now()) for record in records)
        cost = RunCost(paid=usd)
        change_model(
            self._storage, pointer.value["costs"], DayCosts(owner=""), lambda costs: costs.with_run(run_key, cost)
        )

    def _pointer(self, experiment: str, run_key: str) -> str:
        return f"{naming.run_folder(self._work, experiment, run_key)}/costs.json"


def _spent(record: Record, now: datetime) -> float:
    """All generations: a clear begins anew, and what the one before cost stays paid."""
    earlier = [Record.model_validate({**past, "earlier": []}) for past in record.earlier]
    return sum(spent_usd(item, now) for item in (*earlier, record))
