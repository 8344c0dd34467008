"""Reports of users whose jobs lost a field, or did not translate at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trainops.jobspec.training_input import parse_training_input
from trainops.jobspec.translate import Translation
from trainops.jobspec.tuning import translate_tuning

Translate = Callable[..., Translation]

WHOLE: dict[str, Any] = {
    "scaleTier": "CUSTOM",
    "masterType": "n1-standard-16",
    "workerType": "n1-standard-16",
    "parameterServerType": "n1-standard-16",
    "workerCount": 2,
    "parameterServerCount": 1,
    "workerConfig": {"acceleratorConfig": {"count": 1, "type": "NVIDIA_TESLA_T4"}},
    "useChiefInTfConfig": True,
    "scheduling": {"maxWaitTime": "7200s", "maxRunningTime": "7200s"},
    "runtimeVersion": "2.6",
    "pythonVersion": "3.7",
    "region": "europe-west1",
    "packageUris": ["gs://my-bucket/trainer.tar.gz"],
    "pythonModule": "trainer.task",
    "jobDir": "gs://my-bucket/job",
}
"""Fields of https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/1474, its placeholders filled in."""


@pytest.mark.case("C084")
def test_a_whole_job_with_workers_and_parameter_servers_becomes_three_pools_with_a_note_on_each_field(
    translated: Translate,
) -> None:
    found = translated(WHOLE)
    spec = found.job["jobSpec"]
    pools = [(pool["machineSpec"].get("acceleratorType"), pool["replicaCount"]) for pool in spec["workerPoolSpecs"]]
    assert pools == [(None, "1"), ("NVIDIA_TESLA_T4", "2"), (None, "1")]
    assert spec["scheduling"] == {"timeout": "7200s"}
    notes = {note.field: note.verdict for note in found.notes}
    assert notes["scheduling.maxWaitTime"] == "changed"
    assert notes["useChiefInTfConfig"] == "mapped"
    assert [field for field in WHOLE if not any(name.split(".")[0] == field for name in notes)] == []


@pytest.mark.case("C079")
def test_reserved_ranges_of_a_network_are_passed_on(translated: Translate) -> None:
    network = {"network": "projects/12/global/networks/default", "reservedIpRanges": ["one", "two"]}
    spec = translated({"vertex": network}).job["jobSpec"]
    assert (spec["network"], spec["reservedIpRanges"]) == (network["network"], network["reservedIpRanges"])


@pytest.mark.case("C077")
def test_every_trial_of_a_tuning_job_may_use_a_persistent_resource() -> None:
    params = [{"parameterName": "lr", "type": "DOUBLE", "minValue": 0.1, "maxValue": 1.0}]
    fields = {key: value for key, value in WHOLE.items() if key not in {"scheduling"}}
    body = fields | {"hyperparameters": {"goal": "MAXIMIZE", "params": params}, "vertex": {"persistentResourceId": "r"}}
    job = translate_tuning(parse_training_input(body, "job.yaml"), display_name="d", labels={}, substitute="warn").job
    assert job["trialJobSpec"]["persistentResourceId"] == "r"
