from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trainops.errors import ConfigError
from trainops.jobspec.translate import Translation


def _pools(found: Translation) -> list[dict[str, Any]]:
    pools: list[dict[str, Any]] = found.job["jobSpec"]["workerPoolSpecs"]
    return pools


def test_without_tier_and_machines_a_job_is_basic(translated: Callable[..., Translation]) -> None:
    found = translated({})
    assert found.machines == {"n1-standard-4": 1}
    assert ("scaleTier", "defaulted") in {(note.field, note.verdict) for note in found.notes}


def test_without_tier_but_with_a_machine_a_job_is_custom(translated: Callable[..., Translation]) -> None:
    assert translated({"masterType": "n1-standard-16"}).machines == {"n1-standard-16": 1}


def test_a_pool_of_zero_replicas_is_left_out_with_a_note(translated: Callable[..., Translation]) -> None:
    fields = {"scaleTier": "CUSTOM", "masterType": "standard", "workerType": "standard", "workerCount": 0}
    found = translated(fields | {"workerConfig": {"diskConfig": {"bootDiskSizeGb": 500}}})
    assert len(_pools(found)) == 1
    assert {"workerType", "workerConfig", "workerCount"} <= {note.field for note in found.notes}


def test_a_disk_is_passed_on(translated: Callable[..., Translation]) -> None:
    found = translated({"masterConfig": {"diskConfig": {"bootDiskType": "pd-standard", "bootDiskSizeGb": "64000"}}})
    assert _pools(found)[0]["diskSpec"] == {"bootDiskType": "pd-standard", "bootDiskSizeGb": 64000}


def test_a_fixed_tier_may_have_an_image(translated: Callable[..., Translation]) -> None:
    fields = {"scaleTier": "BASIC_GPU", "masterConfig": {"imageUri": "gcr.io/p/i"}, "runtimeVersion": None}
    found = translated(fields | {"packageUris": None, "pythonModule": None})
    assert _pools(found)[0]["containerSpec"] == {"imageUri": "gcr.io/p/i"}


@pytest.mark.case("C072")
@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"scaleTier": "CUSTOM"}, "masterType"),
        ({"scaleTier": "CUSTOM", "masterType": "standard", "workerCount": 1}, "workerType"),
        ({"scaleTier": "CUSTOM", "masterType": "standard", "workerType": "standard", "workerCount": -1}, "workerCount"),
        ({"scaleTier": "BASIC", "masterType": "standard"}, "masterType"),
        ({"scaleTier": "PREMIUM_1", "workerCount": 3}, "workerCount"),
        ({"scaleTier": "BASIC", "workerConfig": {"imageUri": "i"}}, "workerConfig"),
        ({"scaleTier": "BASIC", "masterConfig": {"acceleratorConfig": {"count": 1}}}, "masterConfig.acceleratorConfig"),
        ({"masterConfig": {"diskConfig": {"bootDiskSizeGb": 99}}}, "masterConfig.diskConfig.bootDiskSizeGb"),
        ({"masterConfig": {"diskConfig": {"bootDiskType": "ssd"}}}, "masterConfig.diskConfig.bootDiskType"),
    ],
)
def test_pools_that_cannot_be_are_refused_by_their_key(
    translated: Callable[..., Translation], fields: dict[str, Any], key: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        translated(fields)
    assert (caught.value.source, caught.value.key) == ("job.yaml", key)
