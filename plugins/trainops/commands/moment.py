"""The run that the command line talks about when there is no run yet: one that would start now."""

from __future__ import annotations

from datetime import UTC, datetime

from trainops.config.plan import RunMoment
from trainops.naming import dag_id


def run_now(experiment: str) -> RunMoment:
    """Return the moment of a run of `experiment` that is triggered now."""
    now = datetime.now(UTC)
    return RunMoment(
        dag_id=dag_id(experiment), run_id=f"manual__{now:%Y-%m-%dT%H:%M:%S}+00:00", logical_date=None, run_after=now
    )
