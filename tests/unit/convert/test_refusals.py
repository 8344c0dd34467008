"""What `trainops convert` says of a job that it refuses, or of which a part is only computed when it runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

Convert = Callable[..., tuple[int, str, str]]
OPTIONS = ("--module", "trainer.task", "--package-uris", "gs://b/p.tar.gz", "--region", "us-central1")


def refused(stderr: str) -> list[str]:
    """Keys of the refusals, in their order."""
    return [line.split(": ")[2] for line in stderr.splitlines() if line.startswith("refused: ")]


PARAM = "{parameterName: units, type: CATEGORICAL, categoricalValues: [128, '256']}"
OTHER = "{parameterName: lr, type: DOUBLE, minValue: 1, maxValue: 0.5}"
GPUS = "scaleTier: CUSTOM, masterConfig: {acceleratorConfig: {type: NVIDIA_TESLA_T4, count: 1}}"


@pytest.mark.parametrize(
    ("fields", "keys"),
    [
        (f"hyperparameters: {{params: [{PARAM}]}}", ["hyperparameters.params.0.categoricalValues.0"]),
        (
            f"hyperparameters: {{params: [{PARAM}, {OTHER}]}}",
            ["hyperparameters.params.0.categoricalValues.0", "hyperparameters.params.1.maxValue"],
        ),
        ("hyperparameters: {maxTrials: 2}", ["hyperparameters.params"]),
        ("args: [--steps, 100]", ["args.1"]),
        ("packageUris: [dist/a.whl, gs://b/b.whl]", ["packageUris.0"]),
        ("masterConfig: {imageUri: ''}", ["masterConfig.imageUri"]),
        ("masterConfig: {imageUri: gcr.io/PROJECT/i}", ["masterConfig.imageUri"]),
        ("scaleTier: custom, masterConfig: {acceleratorConfig: {type: NVIDIA_TESLA_T4, count: 1}}", ["scaleTier"]),
        (f"{GPUS}, masterType: n1-standard-7, vertex: {{strategy: FLEX_START, maxWaitDuration: 60s}}", ["masterType"]),
        (f"{GPUS}, masterType: ct5p-hightpu-4t, vertex: {{tpuTopology: 2x2}}", ["masterType"]),
        (
            "scaleTier: CUSTOM, masterType: a3-mega-7g, masterConfig: {diskConfig: {bootDiskType: hyperdisk-balanced}}",
            ["masterType"],
        ),
        (
            "scaleTier: CUSTOM, masterType: n1-standard-4, masterConfig: {acceleratorConfig: {type: T5, count: 1}}, "
            "vertex: {strategy: FLEX_START}",
            ["masterConfig.acceleratorConfig.type"],
        ),
        (
            "scaleTier: CUSTOM, masterType: n1-standard-4, masterConfig: {acceleratorConfig: {count: 1}}",
            ["masterConfig.acceleratorConfig.type"],
        ),
        ("scaleTier: CUSTOM, masterType: n1-standard-4, workerType: n1-standard-4, workerCount: -1", ["workerCount"]),
        ("network: default, vertex: {reservedIpRanges: [a]}", ["network"]),
        ("vertex: {strategy: FAST, maxWaitDuration: 60s}", ["vertex.strategy"]),
        ("region: REGION", ["region"]),
    ],
)
def test_a_refused_field_makes_no_other_field_look_refused(convert: Convert, fields: str, keys: list[str]) -> None:
    whole = "region: us-central1, pythonModule: trainer.task, packageUris: [gs://b/p.whl], runtimeVersion: '2.11'"
    given = {**yaml.safe_load(f"{{{whole}}}"), **yaml.safe_load(f"{{{fields}}}")}
    if "imageUri" in fields:
        del given["runtimeVersion"]
    code, stdout, stderr = convert(yaml.safe_dump({"trainingInput": given}))
    assert (code, stdout) == (2, "")
    assert refused(stderr) == keys
    told = {line.split()[1] for line in stderr.splitlines() if line.startswith(("mapped", "defaulted", "changed"))}
    assert not told & set(keys)
    assert not [word for word in ('"x"', '"image"', "stand-in", "gs://bucket") if word in stderr]


@pytest.mark.parametrize("fields", ["scaleTier: BASIC", "scaleTier: BASIC_TPU", f"{GPUS}, masterType: n1-standard-8"])
def test_what_stands_for_a_missing_image_is_not_told(
    convert: Convert, fields: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINOPS_CONFIGS", str(tmp_path / "nowhere"))
    code, _, stderr = convert(
        f"trainingInput: {{{fields}, pythonModule: t, packageUris: [gs://b/p.whl], region: us-east1}}"
    )
    assert (code, refused(stderr)) == (2, ["runtimeVersion"])
    assert "pythonPackageSpec.packageUris" in stderr
    assert "2-11" not in stderr.split("refused: ")[0]


@pytest.mark.parametrize(
    "text",
    [
        "gcloud ai-platform jobs submit training j_$(date +%s) --job-dir gs://b/$(date) --runtime-version 2.11",
        "gcloud ml-engine jobs submit training j_`date` --job-dir gs://b/`date` --runtime-version 2.11",
    ],
)
def test_a_field_of_which_a_part_is_computed_has_one_row(convert: Convert, text: str) -> None:
    code, _, stderr = convert(text, *OPTIONS, file="submit.sh")
    assert code == 0, stderr
    for name in ("job.jobId", "jobDir"):
        (row,) = [line for line in stderr.splitlines() if line.split()[1:2] == [name] and "for you to fill in" in line]
        assert row.startswith("changed")
    assert sum(line.split()[1:2] == ["job.jobId"] for line in stderr.splitlines()) == 1


def test_a_container_that_is_given_packages_says_what_is_meant(convert: Convert) -> None:
    text = "gcloud ai-platform jobs submit training j --region us-east1 --master-image-uri gcr.io/p/i"
    code, _, stderr = convert(text, "--package-uris", "gs://b/p.whl", file="submit.sh")
    assert (code, refused(stderr)) == (2, ["packageUris"])
    assert "leave packageUris out, and the container runs as it is, or give pythonModule too" in stderr
    assert "the option is --package-uris" in stderr


def test_the_cloudml_yml_of_r_becomes_a_job_with_an_image_of_ones_own(convert: Convert) -> None:
    text = "gcloud: {project: p, region: us-east1, runtime-version: '1.4'}\ncloudml: {storage: gs://my-bucket/mnist}\n"
    code, _, stderr = convert(text, file="cloudml.yml")
    assert code == 2
    assert "build an image with R" in stderr
    code, stdout, stderr = convert(
        f"{text}trainingInput: {{masterConfig: {{imageUri: gcr.io/p/r}}}}", file="cloudml.yml"
    )
    assert code == 0, stderr
    assert json.loads(stdout)["jobSpec"]["workerPoolSpecs"][0]["containerSpec"] == {"imageUri": "gcr.io/p/r"}
