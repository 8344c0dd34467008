from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trainops.errors import ConfigError
from trainops.jobspec.tables.machines import GPU_COUNTS
from trainops.jobspec.tables.substitutes import RETIRED_GPUS
from trainops.jobspec.translate import Translation

Translate = Callable[..., Translation]
FITTING = [
    (machine, kind, count)
    for machine, kinds in GPU_COUNTS.items()
    for kind, counts in kinds.items()
    for count in counts
    if kind not in RETIRED_GPUS
]


def _job(machine: str, **accelerator: Any) -> dict[str, Any]:
    return {"scaleTier": "CUSTOM", "masterType": machine, "masterConfig": {"acceleratorConfig": accelerator}}


@pytest.mark.parametrize(("machine", "kind", "count"), FITTING)
def test_what_the_table_has_is_sent_as_it_stands(translated: Translate, machine: str, kind: str, count: int) -> None:
    found = translated(_job(machine, type=kind, count=str(count)), substitute="refuse")
    assert found.job["jobSpec"]["workerPoolSpecs"][0]["machineSpec"] == {
        "machineType": machine,
        "acceleratorType": kind,
        "acceleratorCount": count,
    }


def test_a_machine_that_comes_with_gpus_needs_no_accelerator_config(translated: Translate) -> None:
    found = translated({"scaleTier": "CUSTOM", "masterType": "a2-highgpu-4g"})
    assert found.accelerators == {"NVIDIA_TESLA_A100": 4}
    assert any("a2-highgpu-4g always has 4 x NVIDIA_TESLA_A100" in note.text for note in found.notes)


@pytest.mark.parametrize("accelerator", [{"type": "NVIDIA_L4"}, {"count": 2}])
def test_a_machine_that_comes_with_gpus_completes_an_accelerator_config(
    translated: Translate, accelerator: dict[str, Any]
) -> None:
    assert translated(_job("g2-standard-24", **accelerator)).accelerators == {"NVIDIA_L4": 2}


@pytest.mark.parametrize(
    ("machine", "retired", "count", "successor"),
    [
        ("n1-standard-4", "NVIDIA_TESLA_K80", 4, "NVIDIA_TESLA_T4"),
        ("n1-standard-4", "NVIDIA_TESLA_K80", 8, "NVIDIA_TESLA_V100"),
        ("n1-standard-8", "NVIDIA_TESLA_P100", 1, "NVIDIA_TESLA_V100"),
        ("n1-standard-16", "NVIDIA_TESLA_P100", 1, "NVIDIA_TESLA_T4"),
    ],
)
def test_a_retired_gpu_gets_the_first_successor_that_keeps_the_count(
    translated: Translate, machine: str, retired: str, count: int, successor: str
) -> None:
    found = translated(_job(machine, type=retired, count=count))
    assert found.accelerators == {successor: count}
    assert found.machines == {machine: 1}


@pytest.mark.parametrize("kind", RETIRED_GPUS)
def test_under_policy_refuse_a_retired_gpu_is_refused(translated: Translate, kind: str) -> None:
    with pytest.raises(ConfigError) as caught:
        translated(_job("n1-standard-8", type=kind, count=1), substitute="refuse")
    assert caught.value.key == "masterConfig.acceleratorConfig"
    assert "1 x NVIDIA_TESLA_T4" in caught.value.allowed


def test_a_gpu_is_found_in_every_pool(translated: Translate) -> None:
    fields = _job("n1-standard-8", type="NVIDIA_TESLA_T4", count=2)
    fields |= {"workerType": "n1-standard-8", "workerCount": 5}
    fields |= {"workerConfig": {"acceleratorConfig": {"type": "NVIDIA_TESLA_V100", "count": 8}}}
    assert translated(fields).accelerators == {"NVIDIA_TESLA_T4": 2, "NVIDIA_TESLA_V100": 40}


@pytest.mark.parametrize(
    ("machine", "accelerator", "part", "allowed", "advice"),
    [
        (
            "n1-standard-8",
            {"type": "NVIDIA_TESLA_V99", "count": 1},
            ".type",
            "NVIDIA_TESLA_V100",
            "n1-standard-8 takes",
        ),
        ("n1-standard-8", {"type": "NVIDIA_TESLA_V100", "count": 3}, ".count", "4", "counts that exist: 1 "),
        ("n1-standard-32", {"type": "NVIDIA_TESLA_V100", "count": 2}, ".count", "8", "n1-standard-16"),
        ("n1-standard-8", {"type": "NVIDIA_TESLA_A100", "count": 1}, ".type", "NVIDIA_TESLA_T4", "a2-highgpu-1g"),
        ("e2-standard-4", {"type": "NVIDIA_TESLA_T4", "count": 1}, ".type", None, "n1-standard-4"),
        ("a2-highgpu-1g", {"type": "NVIDIA_TESLA_A100", "count": 2}, ".count", "1", "a2-highgpu-2g"),
        ("n1-standard-8", {"type": "NVIDIA_TESLA_T4", "count": 0}, ".count", None, "leave acceleratorConfig out"),
        ("n1-standard-8", {"type": "NVIDIA_TESLA_T4"}, ".count", "4", ""),
        ("n1-standard-8", {"count": 1}, ".type", "NVIDIA_TESLA_T4", ""),
        ("n1-standard-8", {"type": "TPU_V2", "count": 8}, ".type", None, "cloud_tpu"),
        ("n1-standard-8", {"type": "TPU_V4_POD", "count": 8}, ".type", None, "ct5lp-hightpu-4t"),
        ("n1-standard-8", {"type": "NVIDIA_TESLA_K80", "count": 16}, ".count", None, "no machine takes"),
        ("complex_model_m_gpu", {"type": "NVIDIA_TESLA_T4", "count": 1}, "", None, "n1-standard-16"),
    ],
)
def test_an_accelerator_that_cannot_be_is_refused_with_what_fits(
    translated: Translate, machine: str, accelerator: dict[str, Any], part: str, allowed: str | None, advice: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        translated(_job(machine, **accelerator))
    assert caught.value.key == f"masterConfig.acceleratorConfig{part}"
    assert allowed is None or allowed in caught.value.allowed
    assert advice in caught.value.next_step


def test_a_misspelt_accelerator_gets_its_nearest_match(translated: Translate) -> None:
    with pytest.raises(ConfigError) as caught:
        translated(_job("n1-standard-8", type="NVIDIA_TESLA_V10O", count=1))
    assert caught.value.nearest == "NVIDIA_TESLA_V100"


@pytest.mark.parametrize(
    ("machine", "config", "told"),
    [
        ("n1-standard-8", {"count": 1}, "of which type.; allowed: .*NVIDIA_TESLA_T4.*name one, or leave"),
        ("n1-standard-8", {"type": "NVIDIA_TESLA_T4"}, "how many NVIDIA_TESLA_T4.; allowed: 1, 2, 4; say how many"),
        ("n1-standard-8", {"type": "NVIDIA_L4"}, "how many NVIDIA_L4.; n1-standard-8 takes "),
        ("e2-standard-4", {"type": "NVIDIA_L4"}, "e2-standard-4 takes no accelerator"),
    ],
)
def test_half_an_accelerator_is_told_what_completes_it(
    translated: Callable[..., Translation], machine: str, config: dict[str, Any], told: str
) -> None:
    fields = {"scaleTier": "CUSTOM", "masterType": machine, "masterConfig": {"acceleratorConfig": config}}
    with pytest.raises(ConfigError, match=told):
        translated(fields)
