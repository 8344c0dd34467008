from __future__ import annotations

from typing import Any

import pytest

from trainops.errors import ConfigError
from trainops.jobspec.reading.held_job import HeldJob
from trainops.jobspec.reading.text import read_job

GCLOUD = """\
gcloud:
  project         : "project-name"
  account         : "account@domain.com"
  region          : "us-central1"
  runtime-version : "1.4"

cloudml:
  storage         : "gs://project-name/mnist"
"""
"""As the package's article on configuration has it."""


def read(text: str) -> HeldJob:
    return read_job(text, "cloudml.yml", lambda name: name)


def told(held: HeldJob) -> dict[str, str]:
    return {note.field: note.verdict for note in held.notes}


def test_region_and_runtime_of_gcloud_are_fields_of_the_job_and_the_rest_is_told() -> None:
    held = read(GCLOUD)
    assert held.form == "the cloudml.yml of the R package cloudml"
    assert held.fields == {"trainingInput": {"region": "us-central1", "runtimeVersion": "1.4"}}
    assert told(held) == {
        "gcloud.region": "mapped", "gcloud.runtime-version": "mapped", "gcloud.project": "changed",
        "gcloud.account": "changed", "cloudml.storage": "changed", "(the program)": "changed",
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        f"{GCLOUD}trainingInput: {{scaleTier: CUSTOM, masterType: large_model}}\n",
        f"{GCLOUD}  trainingInput: {{scaleTier: CUSTOM, masterType: large_model}}\n",
    ],
    ids=["beside", "inside"],
)
def test_the_input_stands_beside_cloudml_or_in_it(text: str) -> None:
    assert read(text).fields["trainingInput"] == {
        "scaleTier": "CUSTOM", "masterType": "large_model", "region": "us-central1", "runtimeVersion": "1.4",
    }  # fmt: skip


def test_what_the_input_says_goes_before_gcloud_and_is_told() -> None:
    held = read(f"{GCLOUD}trainingInput: {{region: europe-west1, runtimeVersion: '1.4'}}\n")
    assert held.fields["trainingInput"] == {"region": "europe-west1", "runtimeVersion": "1.4"}
    assert told(held)["gcloud.region"] == "changed"


def test_a_job_with_an_image_of_its_own_needs_no_runtime_and_no_hint() -> None:
    held = read(f"{GCLOUD}trainingInput: {{masterConfig: {{imageUri: gcr.io/my-project/r}}}}\n")
    assert "runtimeVersion" not in held.fields["trainingInput"]
    assert told(held)["gcloud.runtime-version"] == "changed"
    assert "(the program)" not in told(held)


def test_commands_before_the_program_are_told() -> None:
    held = read('customCommands:\n  - ["pip", "install", "Pillow"]\ntrainingInput:\n  scaleTier: BASIC\n')
    assert held.fields == {"trainingInput": {"scaleTier": "BASIC"}}
    assert told(held)["customCommands"] == "changed"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("gcloud: us-central1\n", "gcloud"),
        ("cloudml: [a]\n", "cloudml"),
        ("cloudml: {trainingInput: x}\n", "trainingInput"),
        ("cloudml: {trainingInput: {}}\ntrainingInput: {}\n", "cloudml.trainingInput"),
    ],
)
def test_what_is_no_cloudml_yml_is_refused_by_its_key(text: str, key: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert caught.value.key == key
    assert caught.value.next_step


def test_an_unknown_key_beside_the_sections_is_not_dropped() -> None:
    assert read(f"{GCLOUD}trainingImput: {{}}\n").fields["trainingImput"] == {}
