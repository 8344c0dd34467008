"""What a run will probably cost, and whether it may."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from trainops.config.conf import CONF, RunConf
from trainops.config.experiment import Queue
from trainops.errors import ConfigError
from trainops.jobspec.cost import job_cost
from trainops.jobspec.translate import Translation


def planned_usd(translated: Sequence[Translation], queue: Queue, conf: RunConf, *, source: str) -> float | None:
    """Return what the dearest of a run's machines cost for the hours that it probably runs; None without a price.

    The hours are those that the experiment estimates, else all that it may run.

    :raises ConfigError: that is more than the run's cap, or the cap cannot be kept, since the list has no price.
    """
    costs = [job_cost(item.job, item.region) for item in translated]
    place, key_of_cap = (source, "queue.max_usd") if conf.max_usd is None else (CONF, "max_usd")
    cap = queue.max_usd if conf.max_usd is None else conf.max_usd
    dearest = max((cost.per_hour for cost in costs if cost.per_hour is not None), default=None)
    unpriced = next((cost.unknown for cost in costs if cost.per_hour is None), ())
    if cap is not None and unpriced:
        raise ConfigError(
            f"the cap cannot be kept: {'; '.join(unpriced)}", source=place, key=key_of_cap, value=cap,
            next_step="leave the cap out, or take machines that have a price",
        )  # fmt: skip
    if dearest is None or unpriced:
        return None
    key = "max_running_hours" if queue.estimate_hours is None else "estimate_hours"
    hours = Decimal(str(getattr(queue, key)))
    if cap is not None and dearest * hours > Decimal(str(cap)):
        raise ConfigError(
            f"the training would cost {dearest * hours:,.2f} USD by the price list: {dearest:,.2f} USD an hour for "
            f"{float(hours):g} hours ({key})", source=place, key=key_of_cap, value=cap,
            next_step="raise the cap, or take fewer or cheaper machines, Spot, or fewer hours",
        )  # fmt: skip
    return float(dearest * hours)
