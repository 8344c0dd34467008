"""How long runs trained makes the estimate of the next one, in an object on a real GCS server."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.integration.storage_proxy import storage_proxy
from tests.unit.config.test_resolve import moment

from trainops import naming
from trainops.config.plan import RunPlan
from trainops.config.resolve import resolve
from trainops.gcp.storage import Storage
from trainops.policy.record import Attempt, Record, TaskTry, Verdict
from trainops.settings import Settings, load_settings
from trainops.steps.durations import KEPT, Duration, Durations, remember_durations, with_estimate

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def plan() -> RunPlan:
    """A plan without an estimate, of 1,000 steps."""
    made = resolve("stdlib_tiny", {"steps": 1000}, moment(), load_settings("local"))
    return made.model_copy(update={"estimate_hours": None, "planned_usd": 2.0, "max_running_hours": 2.0})


def ran(storage: Storage, settings: Settings, number: int, seconds: float, **changes: Any) -> Record:
    """The record of a run that trained for so long, a thousand steps unless told otherwise."""
    folder = f"{settings.work}/runs/stdlib_tiny/run{number}/g1"
    storage.write_json(f"{folder}/plan.json", {"trainer": {"steps": changes.pop("steps", 1000)}}, generation=None)
    attempt = Attempt(number=1, writer="w", intent_at=NOON, create_deadline=NOON, ran_seconds=seconds)
    values: dict[str, Any] = {"verdict": Verdict.SUCCEEDED} | changes
    return Record(
        job_key=f"k{number}", run_key=f"run{number}", experiment="stdlib_tiny",
        owner=TaskTry(dag_id="d", run_id="r", task_id="t"), opened_at=NOON + timedelta(days=number),
        region="us-central1", spec={}, spec_hash="h", folder=folder, attempts=(attempt,), **values,
    )  # fmt: skip


def remember(storage: Storage, settings: Settings, *records: Record) -> list[str]:
    said: list[str] = []
    remember_durations(storage, settings.work, records, said.append)
    return said


def estimate(storage: Storage, settings: Settings, plan: RunPlan) -> tuple[RunPlan, list[str]]:
    said: list[str] = []
    return with_estimate(storage, settings.work, plan, said.append), said


def test_the_first_run_has_no_estimate(storage: Storage, settings: Settings, plan: RunPlan) -> None:
    assert estimate(storage, settings, plan) == (plan, [])


def test_the_next_run_takes_the_median_by_its_own_steps_and_says_so(
    storage: Storage, settings: Settings, plan: RunPlan
) -> None:
    remember(storage, settings, *(ran(storage, settings, n, s) for n, s in enumerate([1800.0, 1700.0, 90000.0])))
    made, said = estimate(storage, settings, plan)
    assert made.estimate_hours == pytest.approx(0.5)
    assert made.planned_usd == pytest.approx(0.5)
    assert said == ["it probably trains for 0.50 h: the median of the last 3 runs of stdlib_tiny"]
    trainer = plan.trainer.model_copy(update={"steps": 500})
    assert estimate(storage, settings, plan.model_copy(update={"trainer": trainer}))[0].estimate_hours == pytest.approx(
        0.25
    )


def test_an_estimate_of_the_experiment_counts_first(storage: Storage, settings: Settings, plan: RunPlan) -> None:
    remember(storage, settings, ran(storage, settings, 1, 1800.0))
    own = plan.model_copy(update={"estimate_hours": 3.0})
    assert estimate(storage, settings, own) == (own, [])


def test_it_is_never_more_than_the_run_may_run(storage: Storage, settings: Settings, plan: RunPlan) -> None:
    remember(storage, settings, ran(storage, settings, 1, 1e6))
    assert estimate(storage, settings, plan)[0].estimate_hours == pytest.approx(plan.max_running_hours)


@pytest.mark.parametrize("verdict", [Verdict.FAILED, Verdict.CANCELLED, None])
def test_a_run_that_did_not_end_well_tells_nothing(
    storage: Storage, settings: Settings, plan: RunPlan, verdict: Verdict | None
) -> None:
    remember(storage, settings, ran(storage, settings, 1, 5.0, verdict=verdict))
    assert estimate(storage, settings, plan) == (plan, [])


def test_an_object_that_is_none_of_ours_is_said_and_left_alone(
    storage: Storage, settings: Settings, plan: RunPlan
) -> None:
    uri = naming.durations_uri(settings.work, "stdlib_tiny")
    storage.write_json(uri, {"kind": "of somebody else"}, generation=0)
    made, said = estimate(storage, settings, plan)
    assert made == plan
    assert "left alone" in said[0]
    assert "left alone" in remember(storage, settings, ran(storage, settings, 1, 5.0))[0]
    found = storage.read_json(uri)
    assert found is not None
    assert found.value == {"kind": "of somebody else"}


def test_runs_that_end_at_once_are_all_kept(gcs_url: str, settings: Settings, storage: Storage, tmp_path: Path) -> None:
    records = [ran(storage, settings, number, 60.0) for number in range(12)]
    with storage_proxy(gcs_url, tmp_path) as proxy:
        value = settings.model_dump(by_alias=True)
        value["endpoints"]["storage"] = proxy.url
        through = Storage.connect(Settings.model_validate(value))
        with ThreadPoolExecutor(12) as runs:
            list(runs.map(lambda record: remember(through, settings, record), records))
    found = storage.read_json(naming.durations_uri(settings.work, "stdlib_tiny"))
    assert found is not None
    assert set(found.value["runs"]) == {f"run{number}" for number in range(12)}


@given(st.lists(st.tuples(st.floats(0, 1e6), st.integers(1, 10**6)), min_size=1, max_size=40), st.integers(1, 10**6))
def test_the_last_runs_are_kept_and_the_estimate_lies_between_theirs(runs: list[tuple[float, int]], steps: int) -> None:
    durations = Durations()
    for number, (seconds, made) in enumerate(runs):
        took = Duration(seconds=seconds, steps=made, opened_at=NOON + timedelta(days=number))
        durations = durations.with_run(f"run{number}", took)
    assert list(durations.runs) == [f"run{number}" for number in range(len(runs))][-KEPT:]
    told = durations.seconds_for(steps)
    assert told is not None
    each = [seconds / made * steps for seconds, made in runs[-KEPT:]]
    assert min(each) <= told * (1 + 1e-9)
    assert told <= max(each) * (1 + 1e-9)
