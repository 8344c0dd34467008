"""A DAG file of AI Platform's days, on a running Airflow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from flit_core.sdist import SdistBuilder

if TYPE_CHECKING:
    from tests.live.cloud import Cloud

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

KEYS = ("job_id", "gcp_metadata")
"""What the Google provider's operator pushed."""
PYPROJECT = """
[build-system]
requires = ["flit_core"]
build-backend = "flit_core.buildapi"

[project]
name = "census"
version = "0.1"
description = "A trainer of 2021"
"""
TASK = """
import argparse, time
parser = argparse.ArgumentParser()
parser.add_argument("--job-dir")
parser.add_argument("--train-steps", type=int)
parser.add_argument("--date")
options = parser.parse_args()
for step in range(options.train_steps):
    print(f"step {step + 1} of {options.train_steps} on {options.date}, for {options.job_dir}")
    time.sleep(1)
"""


def upload_census(cloud: Cloud, folder: Path) -> None:
    """Put the package where the DAG file names it."""
    (folder / "census").mkdir()
    (folder / "census" / "__init__.py").write_text('"""A trainer of 2021."""\n')
    (folder / "census" / "task.py").write_text(TASK)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    builder: Any = SdistBuilder
    package: Path = builder.from_ini_path(folder / "pyproject.toml").build(folder)
    bucket = {"name": "my-bucket"}
    httpx.post(f"{cloud.endpoints['storage']}/storage/v1/b", json=bucket).raise_for_status()
    cloud.services.storage.write_bytes(f"gs://my-bucket/{package.name}", package.read_bytes(), generation=0)


@pytest.mark.case("C035")
@pytest.mark.case("C041")
@pytest.mark.case("C074")
def test_a_deferrable_old_dag_waits_in_the_triggerer_and_ends_green_with_the_old_xcoms(
    cloud: Cloud, rest: httpx.Client, tmp_path: Path
) -> None:
    upload_census(cloud, tmp_path)
    cloud.wait_for_dag("old_census")
    cloud.api.unpause("old_census")
    run = "of_a_day"  # with a date: without one, a run has no `ds` in Airflow 3
    cloud.airflow("dags", "trigger", "old_census", "--run-id", run, "--logical-date", "2026-11-28T00:00:00+00:00")

    def states() -> dict[str, str]:
        return cloud.states("old_census", run)

    cloud.until(lambda: states().get("train") in {"deferred", "failed"}, 180, states)
    assert states()["train"] == "deferred", cloud.log("old_census", run, "train")
    assert cloud.finish("old_census", run) == "success", cloud.log("old_census", run, "train")
    assert states() == {"begin": "success", "train": "success", "cancel": "skipped"}

    entries = f"/api/v2/dags/old_census/dagRuns/{run}/taskInstances/train/xcomEntries"
    pushed = {key: rest.get(f"{entries}/{key}").raise_for_status().json()["value"] for key in KEYS}
    job = next(one for one in cloud.services.vertex("us-central1").list('labels.team="ads"'))
    assert (job["displayName"], job["state"]) == ("census_20261128", "JOB_STATE_SUCCEEDED")
    assert pushed["job_id"] == "census_20261128"
    assert pushed["gcp_metadata"] == {
        "job_id": "census_20261128", "project_id": "local-llm", "job_name": job["name"],
    }  # fmt: skip
    lines = cloud.log("old_census", run, "train").splitlines()
    for step in (1, 2, 3):
        told = f"[workerpool0-0] step {step} of 3 on 2026-11-28, for gs://my-bucket/census/2026-11-28"
        assert sum(told in line for line in lines) == 1, lines
