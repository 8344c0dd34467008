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


def test_a_users_label_with_a_name_of_trainops_own_is_kept_under_another_and_told(translated: Translate) -> None:
    fields = {"job": {"labels": {"team": "a", "attempt": "7"}}, "vertex": {"labels": {"x": "2", "run-key": "mine"}}}
    found = translated(fields, labels={"run-key": "r"})
    assert found.job["labels"] == {"team": "a", "user-attempt": "7", "x": "2", "user-run-key": "mine", "run-key": "r"}
    told = {note.field: note.text for note in found.notes if note.verdict == "changed"}
    assert "attempt as user-attempt" in told["job.labels"]
    assert "run-key as user-run-key" in told["vertex.labels"]


def test_a_users_label_that_cannot_be_kept_under_another_name_is_refused(translated: Translate) -> None:
    with pytest.raises(ConfigError, match="rename one of the two") as caught:
        translated({"job": {"labels": {"task": "a", "user-task": "b"}}}, labels={"task": "t"})
    assert caught.value.key == "job.labels.user-task"


def test_a_label_that_stands_in_both_places_with_two_values_is_told(translated: Translate) -> None:
    found = translated({"job": {"labels": {"x": "1", "y": "1"}}, "vertex": {"labels": {"x": "2", "y": "1"}}})
    assert found.job["labels"] == {"x": "2", "y": "1"}
    assert [note.text for note in found.notes if note.verdict == "changed"] == ["vertex.labels says otherwise: x"]


def test_what_stood_around_the_input_is_noted(translated: Translate) -> None:
    body = {"jobId": "a", "project": "p", "state": "SUCCEEDED"}
    assert {"job.jobId", "job.project", "job.state"} <= {note.field for note in translated({"job": body}).notes}


@pytest.mark.case("C071")
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
        ({"region": "REGION"}, "region"),
        ({"region": "us-central"}, "region"),
        ({"serviceAccount": "NAME@PROJECT.iam.gserviceaccount.com"}, "serviceAccount"),
        ({"encryptionConfig": {"kmsKeyName": KEY.replace("/p/", "/PROJECT/")}}, "encryptionConfig.kmsKeyName"),
        ({"jobDir": "gs://BUCKET/jobs"}, "jobDir"),
        ({"packageUris": ["gs://BUCKET/p.tar.gz"]}, "packageUris.0"),
        ({"masterConfig": {"imageUri": "IMAGE_URI"}, "runtimeVersion": None}, "masterConfig.imageUri"),
        ({"masterConfig": {"imageUri": "gcr.io/PROJECT/i"}, "runtimeVersion": None}, "masterConfig.imageUri"),
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


@pytest.mark.parametrize("region", ["US-Central1", "us_central1", " us-central1"])
def test_a_region_in_another_spelling_is_told_in_the_right_one(translated: Translate, region: str) -> None:
    with pytest.raises(ConfigError, match=r"write us-central1$"):
        translated({"region": region})


@pytest.mark.parametrize("region", ["us-central1", "europe-west12", "northamerica-northeast1", "me-central2"])
def test_every_region_of_the_usual_form_is_taken(translated: Translate, region: str) -> None:
    assert translated({"region": region}).region == region


def test_a_placeholder_for_a_bucket_is_named(translated: Translate) -> None:
    with pytest.raises(ConfigError, match="fill in the name of the bucket for BUCKET"):
        translated({"jobDir": "gs://BUCKET/jobs"})


@pytest.mark.parametrize(
    "uri",
    [
        "i",
        "gcr.io/p/i",
        "gcr.io/p/i:Tag",
        "us-docker.pkg.dev/p/r/i@sha256:0a",
        "localhost:5000/a/b:1",
        "docker.io/a__b/c",
    ],
)
def test_every_name_of_an_image_is_taken(translated: Translate, uri: str) -> None:
    fields = {"masterConfig": {"imageUri": uri}, "runtimeVersion": None, "packageUris": None, "pythonModule": None}
    (pool,) = translated(fields).job["jobSpec"]["workerPoolSpecs"]
    assert pool["containerSpec"]["imageUri"] == uri


@pytest.mark.parametrize("name", ["", "n" * 129])
def test_a_display_name_has_its_length(translated: Translate, name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        translated({}, display_name=name)
    assert caught.value.key == "displayName"


def test_a_label_may_be_written_in_any_alphabet_without_capitals(translated: Translate) -> None:
    assert translated({"vertex": {"labels": {"équipe": "модель-1_日本"}}}).job["labels"] == {"équipe": "модель-1_日本"}
