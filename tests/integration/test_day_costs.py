"""What an owner's runs of a day cost, in objects on a real GCS server: nothing over the cap, nobody forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.integration.storage_proxy import storage_proxy
from tests.unit.config.test_resolve import moment

from trainops import naming
from trainops.config.gpu_pools import GpuPool, GpuPools, OwnerCap
from trainops.config.plan import RunPlan
from trainops.config.resolve import resolve
from trainops.errors import ConfigError, IntegrityError
from trainops.gcp.storage import Storage
from trainops.policy.record import Attempt, Record, TaskTry, Verdict
from trainops.settings import Settings, load_settings
from trainops.steps.day_costs import DayCosts, DayCostsStore

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
POOL = GpuPool(accelerator="NVIDIA_TESLA_T4", region="us-central1", quota=8)
POOLS = GpuPools(pools=[POOL], caps=[OwnerCap(owner="*", usd_per_day=100.0), OwnerCap(owner="rich", usd_per_day=1e6)])


@pytest.fixture(scope="module")
def plan() -> RunPlan:
    return resolve("stdlib_tiny", {}, moment(), load_settings("local"))


@pytest.fixture
def through_proxy(gcs_url: str, settings: Settings, storage: Storage, tmp_path: Path) -> Iterator[Storage]:
    """Storage that keeps preconditions as Google's does."""
    assert storage is not None
    with storage_proxy(gcs_url, tmp_path) as proxy:
        value = settings.model_dump(by_alias=True)
        value["endpoints"]["storage"] = proxy.url
        yield Storage.connect(Settings.model_validate(value))


def store(storage: Storage, settings: Settings, at: datetime = NOON) -> DayCostsStore:
    return DayCostsStore(storage, settings.work, lambda: at)


def costing(plan: RunPlan, key: str, usd: float | None, owner: str = "team") -> RunPlan:
    return plan.model_copy(update={"run_key": key, "planned_usd": usd, "owner": owner})


def day(storage: Storage, settings: Settings, at: datetime = NOON, owner: str = "team") -> DayCosts:
    found = storage.read_json(naming.day_costs_uri(settings.work, at.date(), owner))
    assert found is not None
    return DayCosts.model_validate(found.value)


def ran(seconds: float, **changes: Any) -> Record:
    attempt = Attempt(
        number=1, writer="w", intent_at=NOON, create_deadline=NOON, job_name="projects/p/locations/r/customJobs/1",
        bound_at=NOON, verdict=Verdict.SUCCEEDED, ended_at=NOON, ran_seconds=seconds, usd_per_hour=36.0,
    )  # fmt: skip
    return Record(
        job_key="k", run_key="a", experiment="stdlib_tiny", owner=TaskTry(dag_id="d", run_id="r", task_id="t"),
        opened_at=NOON, region="us-central1", spec={}, spec_hash="h", folder="gs://w/g1", attempts=(attempt,),
        **changes,
    )  # fmt: skip


def test_a_run_over_the_cap_of_its_owner_is_refused_with_the_figures(
    storage: Storage, settings: Settings, plan: RunPlan
) -> None:
    costs = store(storage, settings)
    assert "60.00 of 100.00 USD" in costs.enter(costing(plan, "a", 60.0), POOLS)
    with pytest.raises(ConfigError) as caught:
        costs.enter(costing(plan, "b", 41.0), POOLS)
    error = caught.value
    assert (error.key, error.value) == ("caps.0.usd_per_day", 100.0)
    assert "cost 60.00 USD" in str(error)
    assert "this one would cost 41.00 USD" in str(error)
    assert set(day(storage, settings).runs) == {"a"}


def test_entered_again_a_run_counts_once(storage: Storage, settings: Settings, plan: RunPlan) -> None:
    costs = store(storage, settings)
    for _ in range(3):
        costs.enter(costing(plan, "a", 60.0), POOLS)
    assert day(storage, settings).usd == pytest.approx(60.0)


def test_what_a_run_did_cost_takes_the_place_of_what_was_planned(
    storage: Storage, settings: Settings, plan: RunPlan
) -> None:
    costs = store(storage, settings)
    costs.enter(costing(plan, "a", 90.0), POOLS)
    costs.settle("stdlib_tiny", "a", [ran(1000.0)])
    assert day(storage, settings).usd == pytest.approx(10.0)
    costs.enter(costing(plan, "b", 90.0), POOLS)
    assert day(storage, settings).usd == pytest.approx(100.0)


def test_a_run_that_is_cleared_keeps_what_it_has_cost(storage: Storage, settings: Settings, plan: RunPlan) -> None:
    costs = store(storage, settings)
    costs.enter(costing(plan, "a", 20.0), POOLS)
    costs.settle("stdlib_tiny", "a", [ran(1000.0)])
    costs.enter(costing(plan, "a", 20.0), POOLS)
    assert day(storage, settings).usd == pytest.approx(30.0)
    with pytest.raises(ConfigError, match="cost 10"):
        costs.enter(costing(plan, "a", 95.0), POOLS)
    past = ran(1000.0).to_json()
    costs.settle("stdlib_tiny", "a", [ran(500.0, earlier=(past,))])
    assert day(storage, settings).usd == pytest.approx(15.0)


def test_every_day_and_every_owner_counts_alone(storage: Storage, settings: Settings, plan: RunPlan) -> None:
    store(storage, settings).enter(costing(plan, "a", 90.0), POOLS)
    store(storage, settings, NOON + timedelta(days=1)).enter(costing(plan, "b", 90.0), POOLS)
    store(storage, settings).enter(costing(plan, "c", 90.0, owner="other"), POOLS)
    store(storage, settings).enter(costing(plan, "d", 90_000.0, owner="rich"), POOLS)
    assert day(storage, settings).usd == pytest.approx(90.0)


def test_an_owner_without_a_cap_leaves_no_object(storage: Storage, settings: Settings, plan: RunPlan) -> None:
    costs = store(storage, settings)
    assert costs.enter(costing(plan, "a", 90.0), GpuPools(pools=[POOL])) == ""
    costs.settle("stdlib_tiny", "a", [ran(1000.0)])
    assert list(storage.list(f"{settings.work}/costs/")) == []


def test_a_run_without_a_price_is_let_in_and_said_to_be_not_counted(
    storage: Storage, settings: Settings, plan: RunPlan
) -> None:
    assert "the price of this one not known" in store(storage, settings).enter(costing(plan, "a", None), POOLS)


def test_an_object_that_is_none_of_ours_is_left_alone(storage: Storage, settings: Settings, plan: RunPlan) -> None:
    uri = naming.day_costs_uri(settings.work, NOON.date(), "team")
    storage.write_json(uri, {"kind": "of somebody else"}, generation=0)
    with pytest.raises(IntegrityError, match="left alone"):
        store(storage, settings).enter(costing(plan, "a", 1.0), POOLS)


def test_many_runs_that_start_at_once_never_exceed_the_cap_together(
    through_proxy: Storage, settings: Settings, plan: RunPlan
) -> None:
    def enter(number: int) -> bool:
        try:
            store(through_proxy, settings).enter(costing(plan, f"run{number}", 10.0), POOLS)
        except ConfigError:
            return False
        return True

    with ThreadPoolExecutor(16) as runs:
        entered = list(runs.map(enter, range(16)))
    assert sum(entered) == 10
    costs = day(through_proxy, settings)
    assert costs.usd == pytest.approx(100.0)
    assert set(costs.runs) == {f"run{number}" for number, is_in in enumerate(entered) if is_in}
