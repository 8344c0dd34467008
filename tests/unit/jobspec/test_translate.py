from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainops.errors import ConfigError
from trainops.jobspec import installation
from trainops.jobspec.training_input import TrainingInput, parse_training_input
from trainops.jobspec.translate import Translation, translate

GOLDEN = Path(__file__).parent / "golden"
INPUTS = sorted((GOLDEN / "inputs").glob("*.yaml"))


def _spec(path: Path) -> TrainingInput:
    return parse_training_input(yaml.safe_load(path.read_text()), path.name)


def _translation(spec: TrainingInput, substitute: str = "warn") -> Translation:
    return translate(
        spec,
        display_name="golden",
        labels={"managed-by": "trainops"},
        substitute=substitute,
        env={"TRAINOPS_CONTROL_URI": "gs://my-bucket/control"},
    )


def _request(path: Path) -> Any:
    """The request on file; INSTALL_AND_RUN stands in it for the program that containers install packages with."""
    return json.loads(path.read_text().replace('"INSTALL_AND_RUN"', json.dumps(installation.program())))


def _leaves(value: Any, path: str = "") -> list[str]:
    if not isinstance(value, dict) or not value:
        return [path] if path else []
    return [leaf for key, inner in value.items() for leaf in _leaves(inner, f"{path}.{key}" if path else key)]


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: path.stem)
def test_a_known_input_gives_the_request_on_file(path: Path) -> None:
    name = "seed" if path.stem.startswith("seed") else path.stem
    assert _translation(_spec(path)).job == _request(GOLDEN / f"{name}.json")


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: path.stem)
def test_every_field_that_was_given_has_a_note(path: Path) -> None:
    spec = _spec(path)
    noted = {note.field for note in _translation(spec).notes}
    given = spec.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)
    missing = [leaf for leaf in _leaves(given) if not any(leaf == key or leaf.startswith(f"{key}.") for key in noted)]
    assert missing == []


def test_the_seed_is_one_gpu_master_nine_workers_and_three_parameter_servers() -> None:
    found = _translation(_spec(GOLDEN / "inputs" / "seed_rest.yaml"))
    pools = found.job["jobSpec"]["workerPoolSpecs"]
    assert [pool["replicaCount"] for pool in pools] == ["1", "9", "3"]
    assert found.accelerators == {"NVIDIA_TESLA_V100": 1}
    assert found.machines == {"n1-standard-8": 1, "n1-highcpu-16": 9, "n1-highmem-8": 3}
    assert found.region == "us-central1"
    changed = [note.field for note in found.notes if note.verdict == "changed"]
    assert changed == ["masterType", "workerType"]


def test_allowed_substitutes_are_noted_quietly() -> None:
    found = _translation(_spec(GOLDEN / "inputs" / "seed_rest.yaml"), "allow")
    assert {note.verdict for note in found.notes} == {"mapped", "defaulted"}
    assert any("n1-standard-8 is taken instead" in note.text for note in found.notes)


def test_refused_substitutes_name_the_alternatives() -> None:
    with pytest.raises(ConfigError) as caught:
        _translation(_spec(GOLDEN / "inputs" / "seed_rest.yaml"), "refuse")
    assert caught.value.key == "masterType"
    assert caught.value.source == "seed_rest.yaml"
    assert {"n1-standard-8 + 1 x NVIDIA_TESLA_V100", "n1-highcpu-16 + 2 x NVIDIA_TESLA_V100"} <= set(
        caught.value.allowed
    )


def test_a_skipped_pool_is_an_empty_message() -> None:
    pools = _translation(_spec(GOLDEN / "inputs" / "parameter_servers_without_workers.yaml")).job["jobSpec"]
    assert [bool(pool) for pool in pools["workerPoolSpecs"]] == [True, False, True]


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        _translation(TrainingInput(), "ask")
    assert caught.value.allowed == ["allow", "warn", "refuse"]


def test_all_holes_of_a_partial_job_are_named_at_once() -> None:
    with pytest.raises(
        ConfigError, match=r"region, pythonModule, packageUris, runtimeVersion \(or masterConfig\.imageUri\)"
    ):
        _translation(TrainingInput(scale_tier="BASIC"))


def test_a_translation_does_not_change_its_input() -> None:
    spec = _spec(GOLDEN / "inputs" / "whole_cluster.yaml")
    before = spec.model_dump()
    _translation(spec)
    assert spec.model_dump() == before
