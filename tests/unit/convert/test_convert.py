"""`trainops convert`: the job alone on stdout, a row for every field on stderr, 2 when anything is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from trainops.cli import main
from trainops.commands.conversion import Target, converted
from trainops.jobspec.installation import installed_packages
from trainops.jobspec.reading.held_job import HeldJob

Convert = Callable[..., tuple[int, str, str]]
HOLES = "region, pythonModule, packageUris missing"
OPTIONS = ("--module", "trainer.task", "--package-uris", "gs://b/p.tar.gz", "--region", "us-central1")

REST = """\
{
  // as AI Platform's API took it
  "args": ["--model_dir=gs://my-bucket/models/", "--batch_size=32", "--learning_rate=0.01"],
  "region": "us-central1", "jobDir": "gs://my-bucket/job-output",
  "scaleTier": "CUSTOM", "masterType": "complex_model_m",
  "workerType": "complex_model_m_worker", "parameterServerType": "large_model",
  "workerCount": "9", "parameterServerCount": "3",
  "packageUris": ["gs://my-bucket/packages/trainer.tar.gz"], "pythonModule": "trainer.task",
  "runtimeVersion": "2.3", "pythonVersion": "3.7", # of the runtime
  "masterConfig": {"acceleratorConfig": {"type": "NVIDIA_TESLA_V100", "count": "1"}},
}
"""
REST_FIELDS = "[args, region, jobDir, scale_tier, master_type, worker_type, worker_count, master_config, package_uris]"
PULUMI = """\
parent: projects/my-gcp-project
training_input:
  args: ["--model_dir=gs://my-bucket/models/", "--batch_size=32", "--learning_rate=0.01"]
  region: us-central1
  job_dir: gs://my-bucket/job-output
  scale_tier: CUSTOM
  master_type: complex_model_m
  worker_type: complex_model_m_worker
  parameter_server_type: large_model
  worker_count: "9"
  parameter_server_count: 3
  package_uris: ["gs://my-bucket/packages/trainer.tar.gz"]
  python_module: trainer.task
  runtime_version: "2.3"
  python_version: "3.7"
  master_config: {accelerator_config: {type: NVIDIA_TESLA_V100, count: "1"}}
"""
GCLOUD = """\
gcloud ai-platform jobs submit training job \\
  --region us-central1 --job-dir gs://my-bucket/job-output --scale-tier custom \\
  --master-machine-type complex_model_m --master-accelerator type=nvidia-tesla-v100,count=1 \\
  --worker-machine-type complex_model_m_worker --worker-count 9 \\
  --parameter-server-machine-type large_model --parameter-server-count 3 \\
  --packages gs://my-bucket/packages/trainer.tar.gz --module-name trainer.task \\
  --runtime-version 2.3 --python-version 3.7 \\
  -- --model_dir=gs://my-bucket/models/ --batch_size=32 --learning_rate=0.01
"""


def rows(stderr: str) -> dict[str, str]:
    """Field -> verdict of the table; the last row of a field counts."""
    table = stderr.split("VERDICT", 1)[1].split("\n\n", 1)[0].splitlines()[1:]
    return {line.split()[1]: line.split()[0] for line in table}


@pytest.mark.parametrize("file", ["job.yaml", "-"])
def test_three_spellings_of_one_job_become_the_same_custom_job(convert: Convert, file: str) -> None:
    jobs = []
    for text in (REST, PULUMI, GCLOUD):
        code, stdout, stderr = convert(text, file=file)
        assert code == 0, stderr
        jobs.append({**json.loads(stdout), "displayName": "job"})
    assert jobs[0] == jobs[1] == jobs[2]
    pools = jobs[0]["jobSpec"]["workerPoolSpecs"]
    assert [(pool["machineSpec"]["machineType"], pool["replicaCount"]) for pool in pools] == [
        ("n1-standard-8", "1"), ("n1-highcpu-16", "9"), ("n1-highmem-8", "3"),
    ]  # fmt: skip
    assert pools[0]["pythonPackageSpec"]["executorImageUri"].endswith("/tf-gpu.2-3:latest")


def test_every_field_that_was_given_has_a_row(convert: Convert) -> None:
    _, _, stderr = convert(REST)
    found = rows(stderr)
    given = {*yaml.safe_load(PULUMI)["training_input"]}
    assert {field.split(".")[0] for field in found} >= {
        "".join(part.capitalize() if index else part for index, part in enumerate(name.split("_"))) for name in given
    }
    assert (found["masterType"], found["args"], found["workerCount"]) == ("changed", "mapped", "mapped")
    assert "machines: 1 x n1-standard-8, 9 x n1-highcpu-16, 3 x n1-highmem-8\nGPUs: 1 x NVIDIA_TESLA_V100" in stderr


def test_the_price_of_the_seed_job_stands_below_its_machines_on_stderr(convert: Convert) -> None:
    # Worked out by hand in jobspec/test_cost.py.
    code, stdout, stderr = convert(REST)
    assert code == 0
    assert "$" not in stdout
    price = stderr.split("GPUs: ")[1]
    assert "  1 x n1-standard-8 with 1 x NVIDIA_TESLA_V100      $3.32  $1.74\n" in price
    assert "  9 x n1-highcpu-16                                 $6.11  $2.81\n" in price
    assert "  3 x n1-highmem-8                                  $1.71  $0.79\n" in price
    assert "  all pools                                        $11.14  $5.33\n" in price
    assert "this job pays: on demand, $11.14 per hour\nat most $1,870.85 " in price
    assert "us-central1, 2026-07-30" in price


def test_a_machine_without_price_is_told_and_the_job_is_written(convert: Convert) -> None:
    code, stdout, stderr = convert("trainingInput: {scaleTier: CUSTOM, masterType: a4-highgpu-8g}", *OPTIONS)
    assert code == 0, stderr
    assert json.loads(stdout)
    assert "  1 x a4-highgpu-8g with 8 x NVIDIA_B200    unknown  unknown\n" in stderr
    assert "this job pays: unknown: no price of a4-highgpu-8g\n" in stderr


def test_a_refused_job_has_no_price(convert: Convert) -> None:
    code, _, stderr = convert("trainingInput: {scaleTier: CUSTOM, masterType: complex_model_m}")
    assert code == 2
    assert "price" not in stderr


def test_yaml_writes_the_same_job_without_references(convert: Convert) -> None:
    _, as_json, _ = convert(REST)
    _, as_yaml, _ = convert(REST, "--output", "yaml")
    assert yaml.safe_load(as_yaml) == json.loads(as_json)
    assert "&id" not in as_yaml


def test_a_partial_config_has_its_holes_named_at_once(convert: Convert) -> None:
    code, stdout, stderr = convert("trainingInput: {scaleTier: CUSTOM, masterType: complex_model_m}")
    assert (code, stdout) == (2, "")
    assert stderr.count(HOLES) == 2  # in the table, and below it
    assert "or give --region, --module, --package-uris" in stderr
    assert rows(stderr)["masterType"] == "mapped"
    assert not {"region", "pythonModule", "packageUris"} & {
        line.split()[1] for line in stderr.splitlines() if line.startswith("mapped")
    }


def test_the_options_complete_a_partial_config(convert: Convert) -> None:
    code, stdout, stderr = convert("trainingInput: {scaleTier: CUSTOM, masterType: complex_model_m}", *OPTIONS)
    assert code == 0, stderr
    pool = json.loads(stdout)["jobSpec"]["workerPoolSpecs"][0]
    assert pool["machineSpec"] == {"machineType": "n1-highcpu-16"}
    assert pool["containerSpec"]["command"][3] == "trainer.task"
    assert installed_packages(pool["containerSpec"]) == ("gs://b/p.tar.gz",)


def test_an_option_goes_before_the_file_and_says_so(convert: Convert) -> None:
    code, _, stderr = convert(PULUMI, "--region", "europe-west4")
    assert code == 0
    assert "changed    region" in stderr
    assert "the option --region stands for it: europe-west4" in stderr


def test_all_that_is_refused_is_told_and_the_rest_is_looked_at(convert: Convert) -> None:
    text = "{scaleTier: CUSTOM, masterType: n1-standard-7, workerTipe: standard, args: x, runtimeVersion: '2.3'}"
    code, stdout, stderr = convert(text)
    assert (code, stdout) == (2, "")
    refused = [line for line in stderr.splitlines() if line.startswith("refused: ")]
    assert [line.split(": ")[2] for line in refused] == ["workerTipe", "args", "masterType", "region"]
    assert "did you mean 'workerType'" in refused[0]


def test_local_code_of_a_command_line_needs_the_packages_uri(convert: Convert) -> None:
    text = "gcloud ai-platform jobs submit training j --region us-central1 --module-name m --package-path trainer/ "
    code, _, stderr = convert(f"{text} --runtime-version 2.11", file="submit.sh")
    assert code == 2
    assert "convert cannot" in stderr
    assert "gs://bucket" not in stderr
    code, stdout, stderr = convert(f"{text} --runtime-version 2.11", "--package-uris", "gs://b/p.tar.gz")
    assert code == 0, stderr
    assert "not packaged here" in stderr
    assert "gs://b/p.tar.gz" in stdout


def test_the_config_of_a_command_line_lies_beside_it(convert: Convert, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(REST, encoding="utf-8")
    code, stdout, stderr = convert("gcloud ml-engine jobs submit training j --config config.yaml", file="submit.sh")
    assert code == 0, stderr
    assert json.loads(stdout)["displayName"] == "j"


def test_hyperparameters_become_a_tuning_job(convert: Convert) -> None:
    params = "[{parameterName: lr, type: DOUBLE, minValue: 0.1, maxValue: 1.0}]"
    tuning = (
        f"{{goal: MAXIMIZE, hyperparameterMetricTag: accuracy, maxTrials: 4, maxParallelTrials: 2, params: {params}}}"
    )
    code, stdout, stderr = convert(f"trainingInput: {{hyperparameters: {tuning}}}", *OPTIONS)
    assert code == 0, stderr
    assert {"studySpec", "trialJobSpec"} <= set(json.loads(stdout))
    assert "  1 x n1-standard-4      $0.25  $0.12\n  2 trials at once       $0.49  $0.24\n" in stderr
    assert "this job pays: on demand, $0.49 per hour\nat most $164.83 if all 4 trials run until " in stderr


def test_the_environment_says_which_images_and_substitutes(convert: Convert, configs: Path) -> None:
    assert image(convert(PULUMI, "--env", "local")) == "us-central1-docker.pkg.dev/local-llm/trainops/trainer:0.1.0"
    strict = {**yaml.safe_load((configs / "environments" / "local.yaml").read_text(encoding="utf-8"))}
    (configs / "environments" / "strict.yaml").write_text(yaml.safe_dump({**strict, "substitute": "refuse"}))
    code, _, stderr = convert(PULUMI, "--env", "strict")
    assert code == 2
    assert {"masterType", "workerType"} <= {field for field, verdict in rows(stderr).items() if verdict == "refused"}
    assert rows(stderr)["masterConfig.acceleratorConfig"] == "-"
    assert rows(stderr)["parameterServerType"] == "mapped"


def image(done: tuple[int, str, str]) -> Any:
    code, stdout, stderr = done
    assert code == 0, stderr
    pool = json.loads(stdout)["jobSpec"]["workerPoolSpecs"][0]
    return (
        pool["containerSpec"]["imageUri"] if "containerSpec" in pool else pool["pythonPackageSpec"]["executorImageUri"]
    )


def test_without_any_environment_the_jobs_own_images_serve(
    convert: Convert, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINOPS_CONFIGS", str(tmp_path / "nowhere"))
    assert image(convert(PULUMI)).endswith("/tf-gpu.2-3:latest")


@given(
    st.dictionaries(
        st.sampled_from([*yaml.safe_load(REST_FIELDS), "hyperparameters", "scheduling", "vertex", "labels", "x", 5]),
        st.sampled_from([None, 1, "x", "", [], {}, ["gs://b/p.whl"], {"a": 1}, True, "n1-highcpu-8", "BASIC", "10s"]),
        max_size=5,
    ),
    st.sampled_from(["allow", "warn", "refuse"]),
)
def test_any_change_of_a_job_leaves_a_job_or_says_what_is_refused(changes: dict[Any, Any], substitute: str) -> None:
    fields = {**yaml.safe_load(PULUMI)["training_input"], **changes}
    conversion = converted(HeldJob(fields, "a config"), {}, "job.yaml", Target(substitute))
    assert (conversion.job is None) == bool(conversion.refusals)
    assert all(str(refusal) for refusal in conversion.refusals)


@pytest.mark.parametrize(
    ("text", "told"), [("", "is empty"), ("- a\n", "a training job is a mapping of fields"), ("a: [", "broken YAML")]
)
def test_what_is_no_job_is_refused(convert: Convert, text: str, told: str) -> None:
    code, stdout, stderr = convert(text)
    assert (code, stdout) == (2, "")
    assert told in stderr


def test_a_file_that_is_missing_or_no_text_is_refused(convert: Convert, tmp_path: Path) -> None:
    assert main(["convert", str(tmp_path / "none.yaml")]) == 2
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert main(["convert", str(tmp_path / "binary")]) == 2


@pytest.mark.parametrize(
    ("text", "file", "name"),
    [
        ("trainingInput: {scaleTier: BASIC}", "-", "converted"),
        ("trainingInput: {scaleTier: BASIC}", "my_job.yaml", "my_job"),
        ("gcloud ai-platform jobs submit training j_1 --scale-tier basic", "submit.sh", "j_1"),
        ("resources: {train: {type: t, properties: {trainingInput: {scaleTier: BASIC}}}}", "Pulumi.yaml", "train"),
        ("resources: {train: {properties: {jobId: j, trainingInput: {scaleTier: BASIC}}}}", "Pulumi.yaml", "j"),
    ],
)
def test_a_job_is_named_after_its_id_else_after_what_holds_it(
    convert: Convert, text: str, file: str, name: str
) -> None:
    code, stdout, stderr = convert(text, *OPTIONS, file=file)
    assert code == 0, stderr
    assert json.loads(stdout)["displayName"] == name
