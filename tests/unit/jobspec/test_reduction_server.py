from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trainops.errors import ConfigError
from trainops.jobspec.translate import Translation

Translate = Callable[..., Translation]
GPU = {"acceleratorConfig": {"type": "NVIDIA_TESLA_V100", "count": 8}}
JOB: dict[str, Any] = {
    "scaleTier": "CUSTOM",
    "masterType": "n1-highmem-96",
    "masterConfig": GPU,
    "workerType": "n1-highmem-96",
    "workerConfig": GPU,
    "workerCount": 2,
    "parameterServerType": "n1-highcpu-16",
    "parameterServerCount": 4,
    "vertex": {"reductionServer": True},
}


def test_it_takes_the_place_of_parameter_servers(translated: Translate) -> None:
    servers = translated(JOB).job["jobSpec"]["workerPoolSpecs"][2]
    assert servers["containerSpec"]["imageUri"].endswith("/reductionserver:latest")
    assert servers["replicaCount"] == "4"


def test_parameter_servers_stay_when_it_is_not_wanted(translated: Translate) -> None:
    pools = translated(JOB | {"vertex": {"reductionServer": False}}).job["jobSpec"]["workerPoolSpecs"]
    assert "pythonPackageSpec" in pools[2]


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"parameterServerCount": 0}, "vertex.reductionServer"),
        ({"workerConfig": {}}, "vertex.reductionServer"),
        ({"workerCount": 0}, "vertex.reductionServer"),
        (
            {"parameterServerType": "n1-highmem-96", "parameterServerConfig": GPU},
            "parameterServerConfig.acceleratorConfig",
        ),
    ],
)
def test_it_is_refused_where_it_cannot_work(translated: Translate, fields: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        translated(JOB | fields)
    assert caught.value.key == key
