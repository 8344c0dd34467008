"""The runs that `test_ways_in` looks at."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from tests.live.cloud import Cloud

ASKED = {"steps": 2, "data_date": "2026-11-28"}
"""Conf of the runs of which a person is asked."""


def begin_ways_in(cloud: Cloud) -> None:
    """Begin all at once; they go on side by side, and beside the tests that come first."""
    soon = datetime.now(ZoneInfo("Europe/Berlin")) + timedelta(seconds=100)
    cron = {"cron": f"{soon.minute} {soon.hour} * * *", "timezone": "Europe/Berlin", "start_date": "2026-10-01"}
    calm = cloud.add_experiment("calm")
    busy = cloud.add_experiment(
        "busy", schedule=cron, training={"steps": 2, "batch_size": 4, "warmup_steps": 1}
    )  # fmt: skip
    (cloud.home.dags / "train.py").touch()
    for dag in (busy, calm, "train_manual", "train_asked", "train_dated"):
        cloud.wait_for_dag(dag)
        cloud.api.unpause(dag)
    cloud.trigger("train_manual", "with_conf", {"steps": 4, "data_date": "2026-11-28", "seed": 7})
    cloud.trigger("train_asked", "asked_once", ASKED)
    cloud.airflow(
        "backfill", "create", "--dag-id", "train_dated", "--from-date", "2026-10-25", "--to-date", "2026-10-28",
        "--max-active-runs", "3", "--dag-run-conf", '{"steps": 2}',
    )  # fmt: skip
