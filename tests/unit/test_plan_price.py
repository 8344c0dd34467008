"""The price that `trainops plan` shows: per hour, which of two is paid, and the most until the run's deadline."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainops.cli import main
from trainops.settings import project_root

Plan = Callable[..., str]
FLEXIBLE = {
    "scaleTier": "CUSTOM",
    "masterType": "a2-highgpu-1g",
    "vertex": {"strategy": "FLEX_START"},
}
SPOT = {"scaleTier": "CUSTOM", "masterType": "n1-standard-4", "vertex": {"strategy": "SPOT"}}


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Plan:
    """Plan stdlib_tiny, with another training input where one is given, and answer what is printed."""
    monkeypatch.delenv("TRAINOPS_ENVIRONMENT", raising=False)
    folder = tmp_path / "configs"
    shutil.copytree(project_root() / "include" / "configs", folder)
    monkeypatch.setenv("TRAINOPS_CONFIGS", str(folder))
    cloud = folder / "environments" / "gcp.yaml"
    filled = cloud.read_text(encoding="utf-8").replace("YOUR_PROJECT", "my-project").replace("YOUR_NUMBER", "1")
    cloud.write_text(filled, encoding="utf-8")

    def run(*options: str, training_input: dict[str, Any] | None = None) -> str:
        path = folder / "experiments" / "stdlib_tiny.yaml"
        experiment = yaml.safe_load(path.read_text(encoding="utf-8"))
        changed = experiment if training_input is None else {**experiment, "training_input": training_input}
        path.write_text(yaml.safe_dump(changed), encoding="utf-8")
        assert main(["plan", "stdlib_tiny", *options]) == 0
        return capsys.readouterr().out

    return run


def test_programs_get_the_price_as_fields(plan: Plan) -> None:
    # One replica: 1.15 x (n1-standard-8 0.379998 + T4 0.35) + disk 0.026781 = 0.866279
    # Spot: 0.13402 + 0.175 + 0.15 x 0.729998 + disk 0.026781 = 0.445301. Deadline: 12 h waiting + 2 h running.
    price = json.loads(plan("--output", "json"))["price"]
    assert price["per_hour"]["on_demand"] == pytest.approx(1.732557, abs=1e-5)
    assert price["per_hour"]["spot"] == pytest.approx(0.890601, abs=1e-5)
    assert (price["basis"], price["this_job_per_hour"]) == ("on_demand", price["per_hour"]["on_demand"])
    assert (price["timeout_hours"], price["deadline_hours"]) == (2, 14)
    assert price["at_most_until_timeout"] == pytest.approx(2 * 1.732557, abs=1e-5)
    assert price["at_most_until_deadline"] == pytest.approx(14 * 1.732557, abs=1e-5)
    assert (price["currency"], price["list"]["region"], price["list"]["date"]) == ("USD", "us-central1", "2026-07-30")
    assert [pool["on_demand"] for pool in price["pools"]] == [pytest.approx(0.866279, abs=1e-6)] * 2
    assert "the job that makes the tokens" in price["not_included"]
    assert price["unknown"] == []


def test_people_see_what_a_run_on_google_cloud_pays(plan: Plan) -> None:
    shown = plan("--env", "gcp")
    assert "  1 x n1-standard-8 with 1 x NVIDIA_TESLA_T4      $0.87  $0.45\n" in shown
    assert "  all pools                                       $1.73  $0.89\n" in shown
    assert "this job pays: on demand, $1.73 per hour\n" in shown
    assert "at most $3.47 if it runs until the timeout of Vertex AI, 2 hours\n" in shown
    assert "at most $24.26 with all its attempts until the run's deadline, 14 hours from its start\n" in shown
    assert "list prices of us-central1, 2026-07-30" in shown
    assert "local cloud" not in shown


def test_a_run_on_the_laptop_pays_nothing_and_would_pay_on_google_cloud(plan: Plan) -> None:
    shown = plan()
    assert "price per hour on Google Cloud" in shown
    assert "this job would pay: on demand, $1.73 per hour\non the local cloud it pays nothing\n" in shown


def test_a_spot_job_pays_the_spot_price(plan: Plan) -> None:
    # Spot 0.06701 + 0.15 x 0.189999 + disk 0.026781 = 0.122291
    shown = plan("--env", "gcp", training_input=SPOT)
    assert "this job pays: Spot, $0.12 per hour\n" in shown
    assert "all pools" not in shown
    price = json.loads(plan("--output", "json"))["price"]
    assert price["this_job_per_hour"] == price["per_hour"]["spot"] == pytest.approx(0.122291, abs=1e-6)


def test_a_price_that_the_list_does_not_have_is_unknown_with_the_reason(plan: Plan, tmp_path: Path) -> None:
    pools = tmp_path / "configs" / "gpu_pools.yaml"
    value = yaml.safe_load(pools.read_text(encoding="utf-8"))
    pool = {"accelerator": "NVIDIA_TESLA_A100", "region": "us-central1", "provisioning": "flex_start", "quota": 4}
    pools.write_text(yaml.safe_dump({**value, "pools": [*value["pools"], pool]}), encoding="utf-8")
    shown = plan("--env", "gcp", training_input=FLEXIBLE)
    assert "1 x a2-highgpu-1g with 1 x NVIDIA_TESLA_A100      $4.25  $2.51\n" in shown
    assert "this job pays: unknown: the price list has no FLEX_START prices\n" in shown
    assert "at most" not in shown
    price = json.loads(plan("--output", "json"))["price"]
    assert [price[key] for key in ("basis", "this_job_per_hour", "at_most_until_deadline")] == [None, None, None]
    assert price["unknown"] == ["the price list has no FLEX_START prices"]


def test_another_region_is_told_to_have_other_prices(plan: Plan) -> None:
    shown = plan("--conf", '{"region": "europe-west4"}', "--env", "gcp", training_input=SPOT)
    remark = "these are prices of us-central1: the list has none of europe-west4, where they may differ"
    assert f"remark: {remark}\n" in shown
