from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trainops.errors import ConfigError
from trainops.jobspec.translate import Translation

Translate = Callable[..., Translation]
CONTAINER = {"runtimeVersion": None, "packageUris": None, "pythonModule": None}


def _job(machine: str, accelerator: dict[str, Any] | None = None, **vertex: Any) -> dict[str, Any]:
    config: dict[str, Any] = {"imageUri": "gcr.io/p/i"}
    if accelerator is not None:
        config["acceleratorConfig"] = accelerator
    return CONTAINER | {"scaleTier": "CUSTOM", "masterType": machine, "masterConfig": config, "vertex": vertex}


@pytest.mark.parametrize(
    ("accelerator", "total"),
    [
        (None, {"TPU_V2": 8}),
        ({}, {"TPU_V2": 8}),
        ({"type": "TPU_V3"}, {"TPU_V3": 8}),
        ({"type": "TPU_V3", "count": 32}, {"TPU_V3": 32}),
        ({"type": "TPU_V2_POD", "count": 128}, {"TPU_V2": 128}),
    ],
)
def test_cloud_tpu_takes_a_tpu_or_a_pod(
    translated: Translate, accelerator: dict[str, Any] | None, total: dict[str, int]
) -> None:
    assert translated(_job("cloud_tpu", accelerator)).accelerators == total
    assert translated(_job("cloud-tpu", accelerator)).accelerators == total


@pytest.mark.parametrize(
    ("machine", "topology", "total"),
    [
        ("ct5lp-hightpu-4t", "4x4", {"TPU_V5_LITEPOD": 16}),
        ("ct6e-standard-8t", None, {"TPU_V6E": 8}),
        ("tpu7x-standard-4t", "2x2x2", {"TPU_7X": 8}),
    ],
)
def test_later_tpus_have_a_topology(
    translated: Translate, machine: str, topology: str | None, total: dict[str, int]
) -> None:
    assert translated(_job(machine, tpuTopology=topology)).accelerators == total


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        (_job("cloud_tpu", {"type": "TPU_V4_POD", "count": 8}), "masterConfig.acceleratorConfig.type"),
        (_job("cloud_tpu", {"type": "TPU_V2", "count": 16}), "masterConfig.acceleratorConfig.count"),
        (_job("ct5lp-hightpu-4t"), "vertex.tpuTopology"),
        (_job("ct5lp-hightpu-4t", tpuTopology="3x3"), "vertex.tpuTopology"),
        (_job("n1-standard-4", tpuTopology="2x2"), "vertex.tpuTopology"),
        (_job("ct6e-standard-8t", {"type": "TPU_V2", "count": 8}), "masterConfig.acceleratorConfig"),
        (_job("standard") | {"workerType": "cloud_tpu", "workerCount": 2}, "workerCount"),
        (_job("cloud_tpu", {"type": "TPU_V3", "count": 32}, strategy="SPOT"), "vertex.strategy"),
    ],
)
def test_tpus_that_cannot_be_are_refused(translated: Translate, fields: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        translated(fields)
    assert caught.value.key == key


def test_a_tpu_worker_of_ai_platform_gets_a_note_on_where_it_runs(translated: Translate) -> None:
    found = translated({"scaleTier": "BASIC_TPU"})
    assert any("runs on the TPU VM itself" in note.text for note in found.notes)


def test_the_tensorflow_of_a_tpu_container_is_noted(translated: Translate) -> None:
    fields = _job("cloud_tpu")
    fields["masterConfig"] = fields["masterConfig"] | {"tpuTfVersion": "2.11"}
    assert "masterConfig.tpuTfVersion" in {note.field for note in translated(fields).notes}


def test_the_tensorflow_of_a_tpu_is_refused_elsewhere(translated: Translate) -> None:
    with pytest.raises(ConfigError) as caught:
        translated({"masterConfig": {"tpuTfVersion": "2.11"}})
    assert caught.value.key == "masterConfig.tpuTfVersion"
