from __future__ import annotations

from typing import Any

import pytest

from trainops.errors import ConfigError
from trainops.jobspec.reading.held_job import HeldJob
from trainops.jobspec.reading.text import read_job

COMMAND = "gcloud ai-platform jobs submit training job_1"


def body(text: str, files: dict[str, str] | None = None) -> HeldJob:
    return read_job(text, "submit.sh", (files or {}).__getitem__)


def field(flags: str, name: str) -> Any:
    return body(f"{COMMAND} {flags}").fields["trainingInput"][name]


def test_a_script_is_read_with_its_variables_and_continued_lines() -> None:
    held = body(
        "#!/bin/bash\n"
        "BUCKET=my-bucket\n"
        'export NAME="train_$(date +%Y%m%d)"\n'
        "gsutil mb gs://$BUCKET  # first\n"
        'gcloud beta ml-engine jobs submit training "$NAME" \\\n'
        "  --region=us-central1 \\\n"
        "  --packages gs://$BUCKET/a.tar.gz,gs://${BUCKET}/b.whl --module-name trainer.task \\\n"
        "  -- --name \"it's $BUCKET\" --cost '$5' --steps=10 2>&1 | tee log\n"
    )
    assert held.fields == {
        "jobId": "train_$(date +%Y%m%d)",
        "trainingInput": {
            "region": "us-central1",
            "packageUris": ["gs://my-bucket/a.tar.gz", "gs://my-bucket/b.whl"],
            "pythonModule": "trainer.task",
            "args": ["--name", "it's my-bucket", "--cost", "$5", "--steps=10"],
        },
    }
    assert {note.field: note.value for note in held.notes} == {
        "job.jobId": "train_$(date +%Y%m%d)",
        "(other commands)": ["gsutil", "tee"],
    }


@pytest.mark.parametrize(
    ("flags", "name", "value"),
    [
        ("--scale-tier basic-gpu", "scaleTier", "BASIC_GPU"),
        ("--scale-tier=STANDARD_1", "scaleTier", "STANDARD_1"),
        (
            "--master-accelerator count=2,type=nvidia-tesla-t4 --master-image-uri gcr.io/p/i",
            "masterConfig",
            {"acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": "2"}, "imageUri": "gcr.io/p/i"},
        ),
        (
            "--worker-accelerator type=tpu-v2,count=8",
            "workerConfig",
            {"acceleratorConfig": {"type": "TPU_V2", "count": "8"}},
        ),
        ("--parameter-server-count 3", "parameterServerCount", "3"),
        ("--parameter-server-machine-type large_model", "parameterServerType", "large_model"),
        ("--max-wait-time 1h30m", "scheduling", {"maxWaitTime": "5400s"}),
        ("--use-chief-in-tf-config true", "useChiefInTfConfig", True),
        ("--enable-web-access", "enableWebAccess", True),
        ("--no-enable-web-access", "enableWebAccess", False),
        ("--runtime-version=2.10", "runtimeVersion", "2.10"),
        (
            "--kms-key k --kms-keyring r --kms-location l --kms-project p",
            "encryptionConfig",
            {"kmsKeyName": "projects/p/locations/l/keyRings/r/cryptoKeys/k"},
        ),
        ("-- --region x -- y", "args", ["--region", "x", "--", "y"]),
    ],
)  # fmt: skip
def test_a_flag_is_read_as_gcloud_reads_it(flags: str, name: str, value: object) -> None:
    assert field(flags, name) == value


def test_flags_before_the_group_count_and_labels_stand_beside_the_input() -> None:
    held = body("gcloud --project p-1 --quiet ai-platform jobs submit training job_1 --labels a=b,c=d --region r")
    assert held.fields == {
        "jobId": "job_1", "project": "p-1", "labels": {"a": "b", "c": "d"}, "trainingInput": {"region": "r"},
    }  # fmt: skip
    assert [note.field for note in held.notes] == ["--quiet"]


def test_a_config_file_lies_below_the_flags_and_what_they_override_is_told() -> None:
    config = (
        "trainingInput:\n  region: a\n  scaleTier: CUSTOM\n  masterConfig:\n    imageUri: i\n    acceleratorConfig:\n"
        "      {type: X, count: 1}\n"
    )
    held = body(
        f"{COMMAND} --config c.yaml --region b --master-accelerator type=nvidia-tesla-t4,count=2", {"c.yaml": config}
    )
    assert held.fields["trainingInput"] == {
        "region": "b",
        "scaleTier": "CUSTOM",
        "masterConfig": {"imageUri": "i", "acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": "2"}},
    }
    assert {note.field for note in held.notes} == {"--config", "region", "masterConfig.acceleratorConfig"}


def test_local_code_is_left_to_the_user_to_package() -> None:
    held = body(f"{COMMAND} --package-path trainer/ --packages dist/a.whl,gs://b/c.tar.gz --staging-bucket gs://s")
    assert held.to_package == ("trainer/", "dist/a.whl")
    assert held.fields["trainingInput"] == {"packageUris": ["gs://b/c.tar.gz"]}
    assert [note.field for note in held.notes] == ["--staging-bucket"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"{COMMAND} --scale-teir BASIC", "unknown flag; .*did you mean '--scale-tier'"),
        (f"{COMMAND} --region", "--region: a value is missing"),
        (f"{COMMAND} --region --module-name m", "--region: a value is missing"),
        (f"{COMMAND} other", "two names of the job"),
        (f"{COMMAND} --region $REGION --job-dir gs://${{B}}/x", r"not told: \$REGION, gs://\$\{B\}/x"),
        (f"{COMMAND} --master-accelerator nvidia", "--master-accelerator: key=value pairs"),
        (f"{COMMAND} --master-accelerator count=1", "write type="),
        (f"{COMMAND} --max-wait-time soon", "write a duration"),
        (f"{COMMAND} --kms-key k", "needs --kms-keyring, --kms-location, --kms-project"),
        (f"{COMMAND} --labels 'a", "cannot be read as a shell command"),
        (f"{COMMAND}\n{COMMAND}", "2 commands submit a training job"),
        ("gcloud ai-platform local train --module-name m", "no command submits a training job"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        body(text)
