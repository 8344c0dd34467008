from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trainops.errors import ConfigError
from trainops.jobspec.translate import Translation

Translate = Callable[..., Translation]
KEY = "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"
NETWORK = "projects/123/global/networks/default"


@pytest.mark.parametrize("place", ["input", "vertex"])
def test_fields_that_both_apis_have_may_stand_in_either_place(translated: Translate, place: str) -> None:
    fields = {"network": NETWORK, "serviceAccount": "a@p", "enableWebAccess": True}
    spec = translated(fields if place == "input" else {"vertex": fields}).job["jobSpec"]
    assert {key: spec[key] for key in fields} == fields


def test_the_account_of_the_environment_is_taken_when_the_job_names_none(translated: Translate) -> None:
    assert translated({}, service_account="env@p").job["jobSpec"]["serviceAccount"] == "env@p"
    assert translated({"serviceAccount": "a@p"}, service_account="env@p").job["jobSpec"]["serviceAccount"] == "a@p"


@pytest.mark.parametrize("fields", [{"encryptionConfig": {"kmsKeyName": KEY}}, {"vertex": {"kmsKeyName": KEY}}])
def test_the_encryption_key_is_passed_on(translated: Translate, fields: dict[str, Any]) -> None:
    assert translated(fields).job["encryptionSpec"] == {"kmsKeyName": KEY}


def test_labels_of_trainops_go_over_those_of_the_user(translated: Translate) -> None:
    fields = {"job": {"labels": {"team": "a", "x": "1"}}, "vertex": {"labels": {"x": "2", "run-key": "mine"}}}
    found = translated(fields, labels={"run-key": "r"})
    assert found.job["labels"] == {"team": "a", "x": "2", "run-key": "r"}
    assert any(note.field == "vertex.labels" and note.verdict == "changed" for note in found.notes)


def test_what_stood_around_the_input_is_noted(translated: Translate) -> None:
    body = {"jobId": "a", "project": "p", "state": "SUCCEEDED"}
    assert {"job.jobId", "job.project", "job.state"} <= {note.field for note in translated({"job": body}).notes}


def test_what_only_vertex_has_is_passed_on(translated: Translate) -> None:
    extras = {
        "persistentResourceId": "r",
        "tensorboard": "projects/p/locations/l/tensorboards/1",
        "enableDashboardAccess": True,
        "experiment": "e",
        "experimentRun": "x",
        "models": ["m"],
    }
    spec = translated({"vertex": extras}).job["jobSpec"]
    assert {key: spec[key] for key in extras} == extras


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"region": "us-central1-a"}, "region"),
        ({"region": "us central"}, "region"),
        ({"region": None}, "region"),
        ({"network": "default"}, "network"),
        ({"network": NETWORK, "vertex": {"network": f"{NETWORK}2"}}, "vertex.network"),
        ({"vertex": {"reservedIpRanges": ["a"]}}, "vertex.reservedIpRanges"),
        ({"encryptionConfig": {"kmsKeyName": "k"}}, "encryptionConfig.kmsKeyName"),
        ({"hyperparameters": {"goal": "MAXIMIZE"}}, "hyperparameters"),
        ({"job": {"predictionInput": {}}}, "job.predictionInput"),
        ({"vertex": {"labels": {"Team": "a"}}}, "vertex.labels.Team"),
        ({"vertex": {"labels": {"": "a"}}}, "vertex.labels."),
        ({"vertex": {"labels": {"team": "a b"}}}, "vertex.labels.team"),
        ({"job": {"labels": {"team": "a" * 65}}}, "job.labels.team"),
        ({"job": {"labels": {f"l{i}": "" for i in range(65)}}}, "job.labels"),
    ],
)
def test_fields_that_cannot_be_are_refused(translated: Translate, fields: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        translated(fields)
    assert caught.value.key == key


@pytest.mark.parametrize("name", ["", "n" * 129])
def test_a_display_name_has_its_length(translated: Translate, name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        translated({}, display_name=name)
    assert caught.value.key == "displayName"


def test_a_label_may_be_written_in_any_alphabet_without_capitals(translated: Translate) -> None:
    assert translated({"vertex": {"labels": {"équipe": "модель-1_日本"}}}).job["labels"] == {"équipe": "модель-1_日本"}
