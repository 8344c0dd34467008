"""Other machines of a run: in the user's order, each with a pool, told with the file and key where one cannot be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.config.test_resolve import planned

from trainops.config.plan import RunPlan
from trainops.errors import ConfigError

Change = Callable[..., Path]
FILE = "experiments/stdlib_tiny.yaml"
T4 = "NVIDIA_TESLA_T4"


def pool(region: str, model: str = "standard", kind: str = T4, quota: int = 4) -> dict[str, Any]:
    return {"accelerator": kind, "region": region, "provisioning": model, "quota": quota}


@pytest.fixture
def pools(change: Change) -> None:
    places = [pool("us-central1"), pool("us-east1"), pool("us-central1", "spot"), pool("us-east1", kind="NVIDIA_L4")]
    change("gpu_pools.yaml", {"pools": places})


def candidates(change: Change, *given: dict[str, Any], conf: dict[str, Any] | None = None, **queue: Any) -> RunPlan:
    change(FILE, {"queue.candidates": list(given), **{f"queue.{key}": value for key, value in queue.items()}})
    return planned(conf)


def refused(change: Change, *given: dict[str, Any], **queue: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        candidates(change, *given, **queue)
    return caught.value


@pytest.mark.usefixtures("pools")
def test_each_candidate_is_the_experiments_machines_with_what_differs(change: Change) -> None:
    plan = candidates(
        change,
        {"provisioning": "spot"},
        {"region": "us-east1", "accelerator_type": "NVIDIA_L4", "machine_type": "g2-standard-8"},
    )
    spot, east = [item.training_input for item in plan.candidates]
    assert spot == plan.training_input | {"vertex": {"strategy": "SPOT"}}
    assert (east["region"], east["masterType"]) == ("us-east1", "g2-standard-8")
    assert east["masterConfig"]["acceleratorConfig"]["type"] == "NVIDIA_L4"
    assert RunPlan.from_json(plan.to_json()) == plan


@pytest.mark.usefixtures("pools")
def test_a_plan_without_candidates_is_written_as_before(change: Change) -> None:
    assert not {"candidates", "max_spot_losses", "on_demand_after_hours"} & planned().to_json().keys()


@pytest.mark.usefixtures("pools")
def test_the_conf_counts_gpus_and_workers_for_each(change: Change) -> None:
    plan = candidates(change, {"region": "us-east1"}, conf={"accelerator_count": 2, "worker_count": 1})
    east = plan.candidates[0].training_input
    assert east["masterConfig"]["acceleratorConfig"]["count"] == 2
    assert east["workerCount"] == 1


@pytest.mark.usefixtures("pools")
@pytest.mark.parametrize("conf", [{"region": "us-east1"}, {"machine_type": "n1-standard-16"}, {"accelerator_count": 0}])
def test_a_conf_that_names_its_machines_is_taken_at_its_word(change: Change, conf: dict[str, Any]) -> None:
    assert candidates(change, {"provisioning": "spot"}, conf=conf, max_spot_losses=2).candidates == []


@pytest.mark.usefixtures("pools")
def test_spot_machines_are_given_up_for_the_same_on_demand(change: Change) -> None:
    change(FILE, {"training_input.vertex": {"strategy": "SPOT"}, "queue.max_spot_losses": 2})
    (last,) = planned().candidates
    assert last.after_spot
    assert last.training_input["vertex"] == {"strategy": "STANDARD"}


@pytest.mark.usefixtures("pools")
def test_one_that_is_on_demand_already_needs_no_other(change: Change) -> None:
    plan = candidates(change, {"provisioning": "spot"}, on_demand_after_hours=6.0)
    assert [item.after_spot for item in plan.candidates] == [False]
    assert str(plan.on_demand_after_hours) == "6.0"


WRONG: list[tuple[list[dict[str, Any]], dict[str, Any], str, str]] = [
    ([{"region": "us-west1"}], {}, "pools", "no such GPU pool"),
    ([{"provisioning": "sport"}], {}, "queue.candidates.0.provisioning", "spot"),
    ([{"region": "us-east1"}, {}], {}, "queue.candidates.1", "the same machines"),
    ([{"region": "us-east1"}, {"region": "us-east1"}], {}, "queue.candidates.1", "the same machines"),
    ([{"accelerator_type": "NVIDIA_L5"}], {}, "queue.candidates.0", "NVIDIA_L4"),
    ([{"region": "us-east1"}], {"max_spot_losses": 3}, "queue.max_spot_losses", "no machines are Spot"),
    ([{"zone": "us-east1-b"}], {}, "queue.candidates.0.zone", "region"),
]


@pytest.mark.usefixtures("pools")
@pytest.mark.parametrize(("given", "queue", "key", "words"), WRONG)
def test_a_candidate_that_cannot_be_is_refused_with_its_key(
    change: Change, given: list[dict[str, Any]], queue: dict[str, Any], key: str, words: str
) -> None:
    error = refused(change, *given, **queue)
    assert error.key.startswith(key)
    assert words in str(error)
