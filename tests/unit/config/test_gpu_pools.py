"""GPU pools: each quota once, and no job that could never fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from trainops.config.gpu_pools import GpuPool, load_gpu_pools
from trainops.errors import ConfigError

T4 = {"accelerator": "NVIDIA_TESLA_T4", "region": "us-central1", "provisioning": "standard", "quota": 4}


def write(configs: Path, pools: Any) -> str:
    path = configs / "gpu_pools.yaml"
    path.write_text(yaml.safe_dump({"pools": pools}), encoding="utf-8")
    return str(path)


def test_the_pools_of_the_project_load(configs: Path) -> None:
    assert load_gpu_pools().quotas()["NVIDIA_TESLA_T4/us-central1/standard"] == 4


def test_a_pool_is_named_by_what_makes_its_quota() -> None:
    pool = GpuPool(accelerator="NVIDIA_L4", region="us-east1", provisioning="spot", quota=1)
    assert pool.name == "NVIDIA_L4/us-east1/spot"


@pytest.mark.parametrize(
    ("pools", "key", "value"),
    [
        ([T4, {**T4, "quota": 8}], "pools.1", "NVIDIA_TESLA_T4/us-central1/standard"),
        ([{**T4, "quota": "4"}], "pools.0.quota", "4"),
        ([{**T4, "quota": 4.0}], "pools.0.quota", 4.0),
        ([{**T4, "quota": -1}], "pools.0.quota", -1),
        ([{**T4, "provisioning": "preemptible"}], "pools.0.provisioning", "preemptible"),
        ([{**T4, "region": "us"}], "pools.0.region", "us"),
        ([{**T4, "count": 1}], "pools.0.count", "count"),
        ([], "pools", []),
        ({"t4": T4}, "pools", {"t4": T4}),
    ],
)
def test_wrong_pools_are_refused(configs: Path, pools: Any, key: str, value: object) -> None:
    source = write(configs, pools)
    with pytest.raises(ConfigError) as caught:
        load_gpu_pools()
    assert (caught.value.source, caught.value.key, caught.value.value) == (source, key, value)


def test_a_job_asks_for_all_its_gpus_by_pool(configs: Path) -> None:
    write(configs, [T4, {**T4, "provisioning": "spot", "quota": 9}])
    pools = load_gpu_pools()
    assert pools.ask({"NVIDIA_TESLA_T4": 4}, "us-central1") == {"NVIDIA_TESLA_T4/us-central1/standard": 4}
    assert pools.ask({"NVIDIA_TESLA_T4": 9}, "us-central1", "spot") == {"NVIDIA_TESLA_T4/us-central1/spot": 9}
    assert pools.ask({}, "us-central1") == {}


def test_a_job_that_could_never_fit_is_refused(configs: Path) -> None:
    source = write(configs, [{**T4, "region": "us-east1"}, T4])
    with pytest.raises(ConfigError, match="takes 5 GPUs") as caught:
        load_gpu_pools().ask({"NVIDIA_TESLA_T4": 5}, "us-central1")
    assert (caught.value.source, caught.value.key, caught.value.value) == (source, "pools.1.quota", 4)


def test_a_job_without_a_pool_is_refused_with_the_nearest(configs: Path) -> None:
    write(configs, [T4])
    with pytest.raises(ConfigError, match="no such GPU pool") as caught:
        load_gpu_pools().ask({"NVIDIA_TESLA_T4": 1}, "us-central2")
    assert caught.value.nearest == "NVIDIA_TESLA_T4/us-central1/standard"
