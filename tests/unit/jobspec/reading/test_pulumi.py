from __future__ import annotations

import json
from typing import Any

import pytest

from trainops.errors import ConfigError
from trainops.jobspec.reading.text import read_job

INPUT = {"scaleTier": "BASIC", "region": "us-central1"}
JOB = {"jobId": "job_1", "trainingInput": {**INPUT, "__defaults": []}, "__defaults": ["project"]}
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "x"}


def state(name: str, inputs: dict[str, Any], kind: str = "google-native:ml/v1:Job") -> dict[str, Any]:
    return {"urn": f"urn:pulumi:dev::p::{kind}::{name}", "type": kind, "inputs": inputs}


def preview(*states: dict[str, Any]) -> str:
    steps = [{"op": "create", "urn": found["urn"], "newState": found} for found in states]
    return json.dumps({"config": {}, "steps": [*steps, {"op": "delete", "urn": "u", "oldState": state("old", JOB)}]})


def test_the_job_is_found_among_the_resources_of_a_preview() -> None:
    stack = state("dev", {}, "pulumi:pulumi:Stack")
    bucket = state("bucket", {"location": "US"}, "gcp:storage/bucket:Bucket")
    held = read_job(preview(stack, bucket, state("train", JOB), state("train", JOB)), "preview.json", str)
    assert held.fields == {"jobId": "job_1", "trainingInput": INPUT}
    assert held.form == "the Pulumi resource urn:pulumi:dev::p::google-native:ml/v1:Job::train"
    assert held.name == "train"


def test_an_exported_stack_and_a_program_in_yaml_are_read_too() -> None:
    exported = json.dumps({"version": 3, "deployment": {"resources": [state("train", {"training_input": INPUT})]}})
    program = json.dumps({"name": "p", "resources": {"train": {"type": "t", "properties": JOB}}})
    assert read_job(exported, "stack.json", str).fields == {"training_input": INPUT}
    assert read_job(program, "Pulumi.yaml", str).fields == {"jobId": "job_1", "trainingInput": INPUT}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (preview(state("a", JOB), state("b", JOB)), "several resources are training jobs: .*::a .*::b"),
        (preview(state("a", {"location": "US"}, "bucket")), r"no resource has a trainingInput: .*::a \(bucket\)"),
        (json.dumps({"steps": []}), "no resource has a trainingInput: none"),
        (preview(state("a", {"trainingInput": {"jobDir": UNKNOWN}})), "trainingInput.jobDir: only the deployment"),
        (preview(state("a", {"trainingInput": {"args": [SECRET]}})), "trainingInput.args.0: Pulumi hides it"),
        (preview(state("a", {"trainingInput": {"jobDir": "[secret]"}})), "trainingInput.jobDir: Pulumi hides it"),
    ],
)
def test_what_pulumi_does_not_tell_is_refused_by_name(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read_job(text, "preview.json", str)
