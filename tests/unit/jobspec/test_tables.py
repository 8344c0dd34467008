from __future__ import annotations

import datetime

import pytest

from trainops.jobspec.pools import ROLES
from trainops.jobspec.tables.machines import (
    CLOUD_TPU_TYPES,
    GPU_ALWAYS,
    GPU_COUNTS,
    GPU_TYPES,
    MACHINE_TYPES,
    SCARCE_GPUS,
    TPU_NAMES,
    TPU_TOPOLOGIES,
)
from trainops.jobspec.tables.prebuilt_images import PREBUILT_IMAGES
from trainops.jobspec.tables.runtimes import RUNTIMES
from trainops.jobspec.tables.scale_tiers import LEGACY_MACHINES, SCALE_TIERS, Accelerator, MachineSetup
from trainops.jobspec.tables.substitutes import (
    MISREAD_MACHINES,
    RETIRED_GPU_REASONS,
    RETIRED_GPUS,
    RETIRED_MACHINES,
    RETIRED_RUNTIMES,
    ROOMS_FOR_GPU,
    TPU_RUNTIMES,
)

SETUPS = [*LEGACY_MACHINES.values(), *(row.setup for rows in SCALE_TIERS.values() for row in rows)]


def test_there_are_as_many_machines_as_on_googles_page() -> None:
    assert len(MACHINE_TYPES) == len(set(MACHINE_TYPES)) == 117


def test_machines_with_accelerators_are_machines() -> None:
    assert set(GPU_COUNTS) | set(TPU_TOPOLOGIES) <= set(MACHINE_TYPES)


def test_a_machine_that_comes_with_gpus_has_one_type_and_one_count() -> None:
    for machine in GPU_ALWAYS:
        assert [len(counts) for counts in GPU_COUNTS[machine].values()] == [1]


@pytest.mark.parametrize(
    ("machine", "gpu", "counts"),
    [
        ("n1-highmem-2", "NVIDIA_TESLA_V100", (1, 2, 4, 8)),
        ("n1-highcpu-16", "NVIDIA_TESLA_V100", (2, 4, 8)),
        ("n1-standard-32", "NVIDIA_TESLA_T4", (2, 4)),
        ("n1-highmem-96", "NVIDIA_TESLA_V100", (8,)),
        ("n1-highcpu-64", "NVIDIA_TESLA_P100", (4,)),
        ("g2-standard-32", "NVIDIA_L4", (1,)),
        ("a2-megagpu-16g", "NVIDIA_TESLA_A100", (16,)),
        ("a3-megagpu-8g", "NVIDIA_H100_MEGA_80GB", (8,)),
    ],
)
def test_counts_are_those_of_googles_page(machine: str, gpu: str, counts: tuple[int, ...]) -> None:
    assert GPU_COUNTS[machine][gpu] == counts


def test_every_fixed_tier_has_the_replicas_that_it_had() -> None:
    replicas = {tier: [(row.role, row.replicas) for row in rows] for tier, rows in SCALE_TIERS.items()}
    assert replicas == {
        "BASIC": [("master", 1)],
        "STANDARD_1": [("master", 1), ("worker", 4), ("parameterServer", 3)],
        "PREMIUM_1": [("master", 1), ("worker", 19), ("parameterServer", 11)],
        "BASIC_GPU": [("master", 1)],
        "BASIC_TPU": [("master", 1), ("worker", 1)],
    }
    assert {role for rows in replicas.values() for role, _ in rows} <= set(ROLES)


@pytest.mark.parametrize("setup", SETUPS, ids=str)
def test_every_setup_is_on_vertex_or_has_a_substitute_that_fits(setup: MachineSetup) -> None:
    machine = RETIRED_MACHINES.get(setup.machine, setup.machine)
    assert machine in MACHINE_TYPES
    if setup.accelerator is None or setup.accelerator.type in CLOUD_TPU_TYPES:
        return
    kinds = RETIRED_GPUS.get(setup.accelerator.type, (setup.accelerator.type,))
    assert any(setup.accelerator.count in GPU_COUNTS[machine].get(kind, ()) for kind in kinds)


def test_a_retired_gpu_finds_a_successor_on_every_machine_that_takes_gpus_of_choice() -> None:
    p100 = {
        machine: kinds["NVIDIA_TESLA_P100"] for machine, kinds in GPU_COUNTS.items() if "NVIDIA_TESLA_P100" in kinds
    }
    for machine, counts in p100.items():
        for count in counts:
            assert any(count in GPU_COUNTS[machine][kind] for kind in RETIRED_GPUS["NVIDIA_TESLA_P100"])


def test_substitutes_are_in_service() -> None:
    assert set(RETIRED_MACHINES.values()) | set(ROOMS_FOR_GPU.values()) <= set(MACHINE_TYPES)
    assert not set(RETIRED_MACHINES) & set(MACHINE_TYPES)
    assert {kind for kinds in RETIRED_GPUS.values() for kind in kinds} <= set(GPU_TYPES) - set(RETIRED_GPUS)
    assert set(RETIRED_GPUS) == set(RETIRED_GPU_REASONS)
    assert set(MISREAD_MACHINES.values()) <= set(LEGACY_MACHINES)
    assert set(SCARCE_GPUS) <= set(GPU_TYPES)


def test_a_room_fits_what_did_not_fit_before() -> None:
    for (machine, gpu, count), room in ROOMS_FOR_GPU.items():
        assert count not in GPU_COUNTS[machine][gpu]
        assert count in GPU_COUNTS[room][gpu]


def test_runtimes_with_images_are_those_of_the_list() -> None:
    both = {version for version, kinds in RUNTIMES.items() if {"cpu", "gpu"} <= set(kinds)}
    assert both == {"1.15", *(f"2.{minor}" for minor in range(1, 18) if minor != 10)}
    assert RUNTIMES["2.3"] == {"cpu": {"3.7": "tf-cpu.2-3"}, "gpu": {"3.7": "tf-gpu.2-3"}}
    assert RUNTIMES["2.8"]["gpu"] == {"3.10": "tf-gpu.2-8.py310", "3.7": "tf-gpu.2-8"}
    assert {version for version, kinds in RUNTIMES.items() if "tpu" in kinds} == {"2.12", "2.15"}


def test_runtimes_without_image_have_a_substitute_with_one() -> None:
    assert all(runtime not in RUNTIMES and "gpu" in RUNTIMES[other] for runtime, other in RETIRED_RUNTIMES.items())
    assert all("tpu" in RUNTIMES[other] for other in TPU_RUNTIMES.values())


def test_last_days_are_dates() -> None:
    assert all(datetime.date.fromisoformat(image.available_until) for image in PREBUILT_IMAGES.values())


def test_tpu_families_have_names() -> None:
    assert {machine.split("-", 1)[0] for machine in TPU_TOPOLOGIES} == set(TPU_NAMES)


def test_an_accelerator_reads_as_people_write_it() -> None:
    assert str(Accelerator("NVIDIA_L4", 2)) == "2 x NVIDIA_L4"
