from __future__ import annotations

from collections.abc import Callable

import pytest

from trainops.errors import ConfigError
from trainops.jobspec.tables.machines import MACHINE_TYPES
from trainops.jobspec.tables.scale_tiers import LEGACY_MACHINES
from trainops.jobspec.translate import Translation


@pytest.mark.parametrize("name", LEGACY_MACHINES)
def test_every_legacy_name_gives_a_machine_of_vertex(translated: Callable[..., Translation], name: str) -> None:
    (machine,) = translated({"scaleTier": "CUSTOM", "masterType": name}).machines
    assert machine in MACHINE_TYPES


@pytest.mark.parametrize(
    ("name", "machine"),
    [("n1-highcpu-8", "n1-standard-8"), ("n1-standard-2", "n1-highmem-2"), ("complex_model_s", "n1-standard-8")],
)
def test_a_retired_machine_is_replaced_with_a_note(
    translated: Callable[..., Translation], name: str, machine: str
) -> None:
    found = translated({"scaleTier": "CUSTOM", "masterType": name})
    assert found.machines == {machine: 1}
    assert [note.value for note in found.notes if note.verdict == "changed"] == [name]


@pytest.mark.parametrize("name", ["n1-highcpu-8", "n1-standard-2", "complex_model_s", "complex_model_m_worker"])
def test_under_policy_refuse_a_retired_machine_is_refused(translated: Callable[..., Translation], name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        translated({"scaleTier": "CUSTOM", "masterType": name}, substitute="refuse")
    assert caught.value.key == "masterType"
    assert caught.value.value == name
    assert caught.value.allowed


def test_under_policy_refuse_a_tier_with_a_retired_machine_is_refused(translated: Callable[..., Translation]) -> None:
    with pytest.raises(ConfigError, match="n1-highcpu-8") as caught:
        translated({"scaleTier": "STANDARD_1"}, substitute="refuse")
    assert caught.value.key == "scaleTier"


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("complex_model_xl", "complex_model_l"), ("n1-standard-7", "n1-standard-4"), ("N1-STANDARD-8", "n1-standard-8")],
)
def test_an_unknown_machine_gets_a_nearest_match(
    translated: Callable[..., Translation], name: str, nearest: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        translated({"scaleTier": "CUSTOM", "masterType": name})
    assert caught.value.key == "masterType"
    assert (caught.value.nearest or "")[:8].rstrip("-") == nearest[:8].rstrip("-")
