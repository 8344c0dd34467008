"""The cost of a job: hand-worked figures, tables that know every machine, and what holds of any job.

Figures are worked out from Compute Engine's prices; a pool has a boot disk of 100 GB of pd-ssd unless a test says
otherwise: 100 x 0.17 / 730 x 1.15 = 0.02678082 per hour.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainops.jobspec.cost import JobCost, Rate, job_cost
from trainops.jobspec.disks import disk_types
from trainops.jobspec.tables.machines import CLOUD_TPU_TYPES, GPU_ALWAYS, GPU_COUNTS, MACHINE_TYPES
from trainops.jobspec.tables.prices import (
    DISK_PRICES,
    GPU_PRICES,
    MACHINE_PRICES,
    TPU_PRICES,
    UNPRICED_DISKS,
    UNPRICED_GPUS,
    UNPRICED_MACHINES,
)
from trainops.jobspec.training_input import parse_training_input
from trainops.jobspec.translate import Translation
from trainops.jobspec.tuning import translate_tuning

DISK = Decimal("0.02678082")
ATTACHED = {gpu for machine, counts in GPU_COUNTS.items() if machine not in GPU_ALWAYS for gpu in counts}
SEED = {
    "scaleTier": "CUSTOM",
    "masterType": "complex_model_m",
    "workerType": "complex_model_m_worker",
    "parameterServerType": "large_model",
    "workerCount": "9",
    "parameterServerCount": "3",
    "runtimeVersion": "2.3",
    "pythonVersion": "3.7",
    "masterConfig": {"acceleratorConfig": {"type": "NVIDIA_TESLA_V100", "count": "1"}},
}


def pool(machine: str, replicas: int = 1, gpu: str | None = None, count: int = 1, **fields: Any) -> dict[str, Any]:
    accelerator = {} if gpu is None else {"acceleratorType": gpu, "acceleratorCount": count}
    return {"replicaCount": str(replicas), "machineSpec": {"machineType": machine, **accelerator}, **fields}


def cost_of(*pools: dict[str, Any], region: str = "us-central1", **spec: Any) -> JobCost:
    return job_cost({"jobSpec": {"workerPoolSpecs": list(pools), **spec}}, region)


def rounded(rate: Rate, digits: int = 6) -> tuple[Decimal | None, Decimal | None]:
    def cut(price: Decimal | None) -> Decimal | None:
        return None if price is None else round(price, digits)

    return cut(rate.on_demand), cut(rate.spot)


@pytest.mark.parametrize(
    ("machine", "gpu", "count", "on_demand", "spot"),
    [
        # 1.15 x 3.673385 (host 0.73948 + A100 2.9339); Spot 1.92802 + 0.15 x 3.673385
        ("a2-highgpu-1g", "NVIDIA_TESLA_A100", 1, "4.224393", "2.479028"),
        # 1.15 x 0.706832 (4 vCPUs, 16 GB, L4); Spot 0.397336 + 0.15 x 0.706832
        ("g2-standard-4", "NVIDIA_L4", 1, "0.812857", "0.503361"),
        # the price of Vertex AI's own page: 0.21849885
        ("n1-standard-4", None, 0, "0.218499", "0.095510"),
        # 1.15 x (0.759996 + 4 x 0.35); Spot 0.26804 + 4 x 0.175 + 0.15 x 2.159996
        ("n1-standard-16", "NVIDIA_TESLA_T4", 4, "2.483995", "1.292039"),
        # 1.15 x 4.5, the whole TPU with its host; Spot 1.35 + 0.15 x 4.5
        ("cloud-tpu", "TPU_V2", 8, "5.175", "2.025"),
        ("cloud-tpu", "TPU_V3", 8, "9.2", "3.24"),
    ],
)
def test_one_machine_costs_what_a_hand_works_out(
    machine: str, gpu: str | None, count: int, on_demand: str, spot: str
) -> None:
    cost = cost_of(pool(machine, 1, gpu, count))
    assert cost.rate.on_demand == pytest.approx(Decimal(on_demand) + DISK, abs=Decimal("0.000001"))
    assert cost.rate.spot == pytest.approx(Decimal(spot) + DISK, abs=Decimal("0.000001"))


def test_the_seed_job_costs_the_sum_of_its_thirteen_machines(translated: Callable[..., Translation]) -> None:
    # On Compute Engine: master n1-standard-8 0.379998 + V100 2.48         = 2.859998, Spot 0.13402 + 1.1458 = 1.27982
    #                    9 workers n1-highcpu-16, 9 x 0.566789             = 5.101101, Spot 9 x 0.199914     = 1.799226
    #                    3 parameter servers n1-highmem-8, 3 x 0.473212    = 1.419636, Spot 3 x 0.166888     = 0.500664
    #                    all                                                 9.380735, Spot                    3.57971
    # On Vertex AI: 1.15 x 9.380735 = 10.787845; Spot 3.57971 + 0.15 x 9.380735 = 4.986820
    # 13 boot disks: 13 x 0.02678082 = 0.348151. On demand 11.135996, Spot 5.334971.
    translation = translated(SEED)
    cost = job_cost(translation.job, translation.region)
    assert rounded(cost.rate) == (Decimal("11.135996"), Decimal("5.334971"))
    assert [(found.machine, found.replicas) for found in cost.pools] == [
        ("n1-standard-8", 1), ("n1-highcpu-16", 9), ("n1-highmem-8", 3),
    ]  # fmt: skip
    assert (cost.basis, cost.per_hour, cost.unknown) == ("on_demand", cost.rate.on_demand, ())
    assert (cost.currency, cost.list_region, cost.list_date) == ("USD", "us-central1", "2026-07-30")


def test_googles_example_of_eight_h100s_is_met_within_one_percent() -> None:
    # 101.54 on demand with 2,000 GB SSD, of the SKUs of 2025-08: 8 x 11.2660332 (H100) + 208 x 0.0293227 (vCPU)
    # + 1872 x 0.0025534 (GB) + 2000 x 0.0002678 (SSD). Here: 1.15 x 88.49 + 2000 x 0.0002678 = 102.30, because the
    # price on Compute Engine holds 6,000 GB of local SSD, of which Vertex AI's example has no line.
    disk = {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 2000}
    cost = cost_of(pool("a3-highgpu-8g", 1, "NVIDIA_H100_80GB", 8, diskSpec=disk))
    assert rounded(cost.rate, 2)[0] == Decimal("102.30")
    assert cost.rate.on_demand == pytest.approx(Decimal("101.54"), rel=Decimal("0.01"))
    assert "13% lower" in cost.remarks[0]


def test_gigabytes_of_ssd_cost_what_vertex_ai_takes_for_them() -> None:
    small, large = (cost_of(pool("n1-standard-4", diskSpec={"bootDiskSizeGb": size})) for size in (100, 1100))
    assert small.rate.on_demand is not None
    assert large.rate.on_demand is not None
    gigabyte = (large.rate.on_demand - small.rate.on_demand) / 1000
    assert round(gigabyte, 7) == Decimal("0.0002678")


def test_every_machine_of_vertex_ai_has_a_price_or_is_declared_to_have_none() -> None:
    priced = {*MACHINE_PRICES, "cloud-tpu"}
    assert not priced & UNPRICED_MACHINES
    assert priced | UNPRICED_MACHINES == set(MACHINE_TYPES)


def test_every_attached_gpu_has_a_price_or_is_declared_to_have_none() -> None:
    assert not GPU_PRICES.keys() & UNPRICED_GPUS
    assert GPU_PRICES.keys() | UNPRICED_GPUS == ATTACHED
    assert {kind for kind, _ in TPU_PRICES} == set(CLOUD_TPU_TYPES)


def test_every_boot_disk_has_a_price_or_is_declared_to_have_none() -> None:
    known = {kind for machine in MACHINE_TYPES for kind in disk_types(machine)}
    assert not DISK_PRICES.keys() & UNPRICED_DISKS
    assert DISK_PRICES.keys() | UNPRICED_DISKS == known


@pytest.mark.parametrize("machine", sorted(UNPRICED_MACHINES))
def test_a_machine_without_price_makes_the_total_unknown_by_name(machine: str) -> None:
    cost = cost_of(pool("n1-standard-4"), pool(machine))
    assert cost.rate == Rate(None, None)
    assert (cost.per_hour, cost.at_most(Decimal(2)), cost.until_timeout()) == (None, None, None)
    assert cost.unknown == (f"no price of {machine}",)
    assert cost.pools[0].rate.on_demand is not None


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (pool("n1-standard-4", 1, "NVIDIA_TESLA_P4", 1), "no price of NVIDIA_TESLA_P4"),
        (pool("cloud-tpu", 1, "TPU_V2", 32), "no price of 32 cores of TPU_V2"),
        (pool("n9-standard-4"), "no price of n9-standard-4"),
    ],
)
def test_an_accelerator_or_machine_without_price_is_named(bad: dict[str, Any], told: str) -> None:
    assert cost_of(bad, bad).unknown == (told,)
    assert cost_of(bad).rate == Rate(None, None)


@pytest.mark.parametrize("machine", sorted(GPU_ALWAYS - UNPRICED_MACHINES))
def test_gpus_that_belong_to_a_machine_are_not_counted_again(machine: str) -> None:
    ((gpu, (count,)),) = GPU_COUNTS[machine].items()
    assert cost_of(pool(machine, 2, gpu, count)).rate == cost_of(pool(machine, 2)).rate


@pytest.mark.parametrize(
    ("strategy", "basis", "told"),
    [
        ("STANDARD", "on_demand", ()),
        ("SPOT", "spot", ()),
        ("FLEX_START", None, ("the price list has no FLEX_START prices",)),
    ],
)
def test_the_strategy_says_which_price_is_paid(strategy: str, basis: str | None, told: tuple[str, ...]) -> None:
    cost = cost_of(pool("g2-standard-4", 1, "NVIDIA_L4"), scheduling={"strategy": strategy})
    assert (cost.basis, cost.unknown) == (basis, told)
    assert cost.per_hour == {"on_demand": cost.rate.on_demand, "spot": cost.rate.spot, None: None}[basis]
    assert None not in {cost.rate.on_demand, cost.rate.spot}


@pytest.mark.parametrize("kind", ["ANY_RESERVATION", "SPECIFIC_RESERVATION"])
def test_reserved_machines_are_paid_by_other_terms(kind: str) -> None:
    reserved = pool("g2-standard-4", 1, "NVIDIA_L4")
    reserved["machineSpec"]["reservationAffinity"] = {"reservationAffinityType": kind}
    cost = cost_of(pool("n1-standard-4"), {}, reserved)
    assert (cost.per_hour, cost.unknown) == (None, ("machines of a reservation are paid by its own terms",))
    reserved["machineSpec"]["reservationAffinity"] = {"reservationAffinityType": "NO_RESERVATION"}
    assert cost_of(reserved).basis == "on_demand"


def test_a_persistent_resource_is_paid_by_other_terms() -> None:
    cost = cost_of(pool("n1-standard-4"), persistentResourceId="r")
    assert cost.per_hour is None
    assert "persistent resource" in cost.unknown[0]


def test_another_region_has_the_lists_prices_and_a_remark() -> None:
    here, there = (cost_of(pool("n1-standard-4"), region=region) for region in ("us-central1", "europe-west4"))
    assert here.rate == there.rate
    assert here.remarks == ()
    assert there.remarks == (
        "these are prices of us-central1: the list has none of europe-west4, where they may differ",
    )


def test_prices_of_no_stated_day_are_remarked_where_they_are_used() -> None:
    assert "no stated day" in cost_of(pool("n1-standard-8", 1, "NVIDIA_TESLA_T4")).remarks[0]
    assert "no stated day" in cost_of(pool("cloud-tpu", 1, "TPU_V3", 8)).remarks[0]
    assert cost_of(pool("cloud-tpu", 1, "TPU_V3", 32)).remarks == ()


def test_a_boot_disk_without_price_is_told_as_not_counted() -> None:
    cost = cost_of(pool("n4-standard-4", diskSpec={"bootDiskType": "hyperdisk-balanced", "bootDiskSizeGb": 500}))
    assert rounded(cost.rate) == (Decimal("0.20861"), Decimal("0.116778"))
    assert cost.not_included[0] == "boot disks of type hyperdisk-balanced"


@pytest.mark.parametrize(
    ("machine", "kind"),
    [
        ("a3-ultragpu-8g", "NVIDIA_H200_141GB"),
        ("a4-highgpu-8g", "NVIDIA_B200"),
        ("n4-standard-4", ""),
        ("g4-standard-48", ""),
    ],
)
def test_a_machine_with_hyperdisk_alone_has_no_disk_of_another_type_in_its_price(machine: str, kind: str) -> None:
    cost = cost_of(pool(machine, 1, kind, 8) if kind else pool(machine))
    assert cost.not_included[0] == "boot disks of type hyperdisk-balanced"


def test_a_job_runs_until_its_timeout_or_for_seven_days_at_most() -> None:
    cost = cost_of(pool("n1-standard-4"), scheduling={"timeout": "5400s"})
    assert cost.timeout_hours == Decimal("1.5")
    assert cost.per_hour is not None
    assert cost.until_timeout() == cost.per_hour * Decimal("1.5") == cost.at_most(Decimal("1.5"))
    assert cost_of(pool("n1-standard-4")).timeout_hours == 168


def test_a_tuning_job_costs_its_trials_at_once_and_at_most_all_of_them() -> None:
    params = [{"parameterName": "lr", "type": "DOUBLE", "minValue": 0.1, "maxValue": 1.0}]
    hyper = {"goal": "MAXIMIZE", "maxTrials": 10, "maxParallelTrials": 4, "params": params}
    spec = {
        "region": "us-central1",
        "packageUris": ["gs://my-bucket/trainer.tar.gz"],
        "pythonModule": "trainer.task",
        "runtimeVersion": "2.11",
        "hyperparameters": hyper,
        "scheduling": {"maxRunningTime": "7200s"},
    }
    parsed = parse_training_input(spec, "job.yaml")
    translation = translate_tuning(parsed, display_name="job", labels={}, substitute="warn")
    cost = job_cost(translation.job, translation.region)
    one = cost_of(pool("n1-standard-4")).rate
    assert cost.trial == one
    assert cost.rate == one * 4
    assert cost.per_hour == cost.rate.on_demand
    assert one.on_demand is not None
    assert cost.until_timeout() == one.on_demand * 10 * 2


MACHINES = st.sampled_from([
    *((machine, None, 0) for machine in MACHINE_PRICES if machine not in GPU_ALWAYS),
    *(
        (machine, gpu, count)
        for machine, kinds in GPU_COUNTS.items()
        for gpu, counts in kinds.items()
        for count in counts
        if machine in MACHINE_PRICES and (machine in GPU_ALWAYS or gpu in GPU_PRICES)
    ),
    *(("cloud-tpu", kind, cores) for kind, cores in TPU_PRICES),
])  # fmt: skip
DISKS = st.sampled_from([{}, {"bootDiskType": "pd-standard", "bootDiskSizeGb": 300}, {"bootDiskSizeGb": 1000}])
POOLS = st.lists(st.tuples(MACHINES, st.integers(1, 500), DISKS), min_size=1, max_size=4)


@given(POOLS, st.integers(2, 9))
def test_the_total_is_the_sum_of_the_pools_grows_with_replicas_and_spot_is_cheaper(drawn: Any, factor: int) -> None:
    def priced(times: int) -> JobCost:
        return cost_of(*(pool(name, n * times, gpu, count, diskSpec=disk) for (name, gpu, count), n, disk in drawn))

    cost, larger = priced(1), priced(factor)
    singles = [
        cost_of(pool(name, 1, gpu, count, diskSpec=disk)).rate.on_demand for (name, gpu, count), _, disk in drawn
    ]
    replicas = [n for _, n, _ in drawn]
    whole = sum(price * n for price, n in zip(singles, replicas, strict=True) if price is not None)
    assert cost.rate.on_demand is not None
    assert cost.rate.spot is not None
    assert larger.rate.on_demand is not None
    assert cost.rate.on_demand == pytest.approx(whole, rel=Decimal("1e-20"))
    assert larger.rate.on_demand == pytest.approx(cost.rate.on_demand * factor, rel=Decimal("1e-20"))
    assert 0 < cost.rate.spot < cost.rate.on_demand
