"""One task that takes as long as it is told, or fails when it is told."""

from __future__ import annotations

import time
from typing import Any

import pendulum
from airflow.sdk import dag, task


@dag(schedule=None, start_date=pendulum.datetime(2026, 1, 1, tz="UTC"), catchup=False, default_args={"retries": 2})
def little() -> None:
    @task(retry_delay=1)
    def wait(dag_run: Any = None) -> None:
        if dag_run.conf.get("fail"):
            raise ValueError("told to fail")
        for second in range(dag_run.conf.get("seconds", 0)):
            print("second", second)
            time.sleep(1)

    wait()


little()
