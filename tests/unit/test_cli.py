"""The command line as people meet it: data on stdout, the rest on stderr, an exit code that says whose fault it is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainops.cli import main
from trainops.settings import project_root

Run = Callable[..., subprocess.CompletedProcess[str]]
Call = Callable[..., tuple[int, str, str]]
EXPERIMENT = "experiments/stdlib_tiny.yaml"
TRAINER = '[build-system]\nrequires = ["flit_core"]\nbuild-backend = "flit_core.buildapi"\n[project]\n'
LOCAL = {"vertex": "http://127.0.0.1:9", "storage": "http://127.0.0.1:9", "logging": "http://127.0.0.1:9"}


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    folder = tmp_path / "configs"
    shutil.copytree(project_root() / "include" / "configs", folder)
    edit(folder, "environments/local.yaml", endpoints=str(tmp_path / "endpoints.json"))
    return folder


@pytest.fixture
def trainer(tmp_path: Path) -> Path:
    package = tmp_path / "trainer" / "src" / "trainer"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('"""A trainer."""\n', encoding="utf-8")
    project = f'{TRAINER}name = "trainer"\nversion = "0.1.0"\ndescription = "A trainer"\n'
    (tmp_path / "trainer" / "pyproject.toml").write_text(project, encoding="utf-8")
    return tmp_path / "trainer"


@pytest.fixture
def trainops(configs: Path, trainer: Path) -> Run:
    """Run the command line in a process of its own."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("TRAINOPS_")}
        paths = {"PYTHONPATH": str(project_root() / "plugins"), "TRAINOPS_CONFIGS": str(configs)}
        return subprocess.run(
            [sys.executable, "-m", "trainops", *arguments],
            env={**kept, **paths, "TRAINOPS_TRAINER": str(trainer)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture
def called(configs: Path, trainer: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run the command line in this process, which is faster; answers exit code, stdout, stderr."""
    monkeypatch.delenv("TRAINOPS_ENVIRONMENT", raising=False)
    monkeypatch.setenv("TRAINOPS_CONFIGS", str(configs))
    monkeypatch.setenv("TRAINOPS_TRAINER", str(trainer))

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        return code, *capsys.readouterr()

    return call


def edit(configs: Path, file: str, /, **changes: Any) -> None:
    path = configs / file
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text(encoding="utf-8")), **changes}), encoding="utf-8")


def test_plan_shows_the_job_its_gpus_and_machines(trainops: Run) -> None:
    done = trainops("plan", "stdlib_tiny", "--conf", '{"steps": 50}', "--output", "json")
    assert (done.returncode, done.stderr) == (0, "")
    shown = json.loads(done.stdout)
    assert shown["gpus"] == {"NVIDIA_TESLA_T4": 2}
    assert shown["machines"] == {"n1-standard-8": 2}
    assert shown["pools"] == {"NVIDIA_TESLA_T4/us-central1/standard": 2}
    assert shown["plan"]["trainer"]["steps"] == 50
    pools = shown["job"]["jobSpec"]["workerPoolSpecs"]
    assert [pool["machineSpec"]["acceleratorType"] for pool in pools] == ["NVIDIA_TESLA_T4"] * 2
    assert {"masterType", "workerCount"} <= {note["field"] for note in shown["notes"]}


def test_plan_shows_people_the_same(trainops: Run) -> None:
    done = trainops("plan", "stdlib_tiny")
    assert (done.returncode, done.stderr) == (0, "")
    assert "GPUs       2 x NVIDIA_TESLA_T4" in done.stdout
    assert "machines   2 x n1-standard-8" in done.stdout
    job = yaml.safe_load(done.stdout.split("# the CustomJob\n")[1])
    assert len(job["jobSpec"]["workerPoolSpecs"]) == 2


def test_plan_needs_no_network_for_the_cloud_environment(trainops: Run, configs: Path) -> None:
    path = configs / "environments" / "gcp.yaml"
    filled = path.read_text(encoding="utf-8").replace("YOUR_PROJECT", "my-project").replace("YOUR_NUMBER", "1")
    path.write_text(filled, encoding="utf-8")
    done = trainops("plan", "stdlib_tiny", "--env", "gcp", "--output", "json")
    assert done.returncode == 0, done.stderr
    spec = json.loads(done.stdout)["job"]["jobSpec"]
    assert spec["serviceAccount"] == "trainops@my-project.iam.gserviceaccount.com"
    container = spec["workerPoolSpecs"][0]["containerSpec"]
    assert container["imageUri"] == "us-central1-docker.pkg.dev/my-project/trainops/trainer:0.1.0"


def test_the_conf_may_lie_in_a_file(trainops: Run, tmp_path: Path) -> None:
    (tmp_path / "conf.json").write_text('{"steps": 51}', encoding="utf-8")
    done = trainops("plan", "stdlib_tiny", "--conf", f"@{tmp_path / 'conf.json'}", "--output", "json")
    assert json.loads(done.stdout)["plan"]["conf"] == {"steps": 51}


@pytest.mark.parametrize(
    ("conf", "told"),
    [
        ('{"stesp": 1}', ["conf: stesp: unknown key", "did you mean 'steps'?"]),
        ('{"steps": "ten"}', ["conf: steps: a whole number is expected; got 'ten'"]),
        ('{"steps": 0}', ["conf: steps: must be greater than or equal to 1; got 0"]),
        ('{"accelerator_type": "NVIDIA_TESLA_T5"}', ["conf: accelerator_type: ", "did you mean 'NVIDIA_TESLA_T4'?"]),
        ('{"accelerator_count": 3}', ["conf: accelerator_count: ", "got 3", "allowed: 1, 2, 4"]),
        ('{"machine_type": "n2-standard-8"}', ["conf: machine_type: ", "n2-standard-8"]),
        ('{"worker_count": 1001}', ["conf: worker_count: must be less than or equal to 1000"]),
        ('{"dataset": "stdlb"}', ["conf: dataset: no such dataset; got 'stdlb'", "did you mean 'stdlib'?"]),
        ('{"steps": }', ["conf: broken JSON at line 1, column 11"]),
        ("{'steps': 1}", ["conf: broken JSON at line 1, column 2"]),
        ("[1]", ["conf: a conf is a JSON object; got [1]"]),
        ("@no-such-file.json", ["conf: --conf: cannot be read"]),
    ],
)
def test_a_wrong_conf_is_one_clear_error(called: Call, conf: str, told: list[str]) -> None:
    code, stdout, stderr = called("plan", "stdlib_tiny", "--conf", conf)
    assert (code, stdout) == (2, "")
    assert stderr.startswith("error: ")
    assert stderr.count("\n") == 1
    for words in told:
        assert words in stderr


def test_a_wrong_conf_ends_the_process_with_2_and_no_traceback(trainops: Run) -> None:
    done = trainops("plan", "stdlib_tiny", "--conf", '{"steps": "ten"}')
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: conf: steps: a whole number is expected; got 'ten'\n"


def broken_yaml(configs: Path, trainer: Path) -> None:
    (configs / EXPERIMENT).write_text("description: a: b\n", encoding="utf-8")


def unknown_key(configs: Path, trainer: Path) -> None:
    edit(configs, EXPERIMENT, trainig={})


def no_such_gpu(configs: Path, trainer: Path) -> None:
    gpu = {"acceleratorConfig": {"type": "NVIDIA_TESLA_T5", "count": 1}}
    edit(
        configs, EXPERIMENT, training_input={"scaleTier": "CUSTOM", "masterType": "n1-standard-8", "masterConfig": gpu}
    )


def gpus_without_an_image(configs: Path, trainer: Path) -> None:
    edit(configs, "environments/local.yaml", image={"cpu": "us-docker.pkg.dev/p/r/cpu:1", "gpu": None})


def gpus_with_an_image_for_cpus(configs: Path, trainer: Path) -> None:
    image = "us-docker.pkg.dev/vertex-ai/training/pytorch-xla.2-4.py310:latest"
    edit(configs, "environments/local.yaml", image={"cpu": image, "gpu": image})


def gpus_with_an_image_for_tpus(configs: Path, trainer: Path) -> None:
    image = "us-docker.pkg.dev/vertex-ai/training/pytorch-tpu.2-2.cp310:latest"
    edit(configs, "environments/local.yaml", image={"cpu": "us-docker.pkg.dev/p/r/cpu:1", "gpu": image})


def missing_dataset(configs: Path, trainer: Path) -> None:
    edit(configs, EXPERIMENT, dataset="stdlb")


def path_that_is_missing(configs: Path, trainer: Path) -> None:
    edit(configs, "datasets/stdlib.yaml", path="/no/such/folder/{data_date}")


def globs_that_match_nothing(configs: Path, trainer: Path) -> None:
    edit(configs, "datasets/stdlib.yaml", include=["**/*.nothing"])


def empty_dataset(configs: Path, trainer: Path) -> None:
    (configs.parent / "empty").mkdir()
    edit(configs, "datasets/stdlib.yaml", path=str(configs.parent / "empty"))


def trainer_that_does_not_build(configs: Path, trainer: Path) -> None:
    (trainer / "pyproject.toml").write_text(TRAINER, encoding="utf-8")


BROKEN: list[tuple[Callable[[Path, Path], None], list[str]]] = [
    (broken_yaml, ["stdlib_tiny.yaml: broken YAML at line 1, column 15"]),
    (unknown_key, ["stdlib_tiny.yaml: trainig: unknown key", "did you mean 'training'?"]),
    (no_such_gpu, ["stdlib_tiny.yaml: training_input.masterConfig.acceleratorConfig.type", "'NVIDIA_TESLA_T4'?"]),
    (
        gpus_without_an_image,
        ["stdlib_tiny.yaml: training_input.runtimeVersion", "set image.gpu in the environment local"],
    ),
    (gpus_with_an_image_for_cpus, ["environment local: image.gpu: this prebuilt image cannot use", "pytorch-xla.2-4"]),
    (gpus_with_an_image_for_tpus, ["environment local: image.gpu: this prebuilt image cannot use", "pytorch-tpu.2-2"]),
    (missing_dataset, ["stdlib_tiny.yaml: dataset: no such dataset", "did you mean 'stdlib'?"]),
    (path_that_is_missing, ["/no/such/folder/"]),
    (globs_that_match_nothing, ["**/*.nothing"]),
    (empty_dataset, ["empty"]),
    (trainer_that_does_not_build, ["pyproject.toml"]),
]


@pytest.mark.parametrize("command", ["plan", "check"])
@pytest.mark.parametrize(("breaks", "told"), BROKEN, ids=[breaks.__name__ for breaks, _ in BROKEN])
def test_what_is_broken_is_told_before_anything_runs(
    called: Call, configs: Path, trainer: Path, command: str, breaks: Callable[[Path, Path], None], told: list[str]
) -> None:
    breaks(configs, trainer)
    code, _, stderr = called(command, "stdlib_tiny")
    assert code == 2
    [line] = [line for line in stderr.splitlines() if line.startswith(("error:", "problem experiment"))]
    for words in told:
        assert words in line


def test_an_experiment_with_a_bad_character_is_refused(trainops: Run, configs: Path) -> None:
    shutil.copy(configs / EXPERIMENT, configs / "experiments" / "My-Model.yaml")
    done = trainops("check", "My-Model")
    assert done.returncode == 2
    assert "rename the file to my_model.yaml" in done.stderr


def test_check_says_which_of_all_experiments_is_broken(trainops: Run, configs: Path) -> None:
    shutil.copy(configs / EXPERIMENT, configs / "experiments" / "second.yaml")
    (configs / "experiments" / "broken.yaml").write_text(":", encoding="utf-8")
    done = trainops("check", "--output", "json")
    assert done.returncode == 2
    found = {row["name"]: row["ok"] for row in json.loads(done.stdout) if row["kind"] == "experiment"}
    assert found == {"broken": False, "second": True, "stdlib_tiny": True, "stdlib_docstrings": False}
    assert "problem experiment stdlib_docstrings: nobody could look for stdlib-tiny@production" in done.stderr
    assert "ok      experiment second" in done.stderr


def test_check_tells_of_files_that_are_not_read(called: Call, configs: Path) -> None:
    shutil.copy(configs / EXPERIMENT, configs / "experiments" / "second.yml")
    code, _, stderr = called("check")
    assert code == 2
    assert "rename it to second.yaml" in stderr


def test_check_fails_without_blaming_a_file_when_the_local_cloud_is_down(trainops: Run) -> None:
    done = trainops("check")
    assert (done.returncode, done.stdout) == (1, "")
    assert "problem services local" in done.stderr
    assert "make up" in done.stderr


def test_check_says_which_services_cannot_be_reached(trainops: Run, tmp_path: Path) -> None:
    (tmp_path / "endpoints.json").write_text(json.dumps(LOCAL), encoding="utf-8")
    done = trainops("check")
    assert done.returncode == 1
    assert "problem service vertex http://127.0.0.1:9: cannot be reached" in done.stderr


def test_check_names_the_placeholders_of_the_cloud_environment(trainops: Run) -> None:
    done = trainops("check", "--env", "gcp")
    assert done.returncode == 2
    assert "problem environment gcp" in done.stderr
    assert "service_account (YOUR_PROJECT)" in done.stderr


def test_check_refuses_a_pool_of_an_accelerator_that_does_not_exist(trainops: Run, configs: Path) -> None:
    pool = {"accelerator": "NVIDIA_TESLA_T5", "region": "us-central1", "quota": 1}
    edit(configs, "gpu_pools.yaml", pools=[pool])
    done = trainops("check")
    assert done.returncode == 2
    assert "gpu_pools.yaml: pools.0.accelerator: no such accelerator; got 'NVIDIA_TESLA_T5'" in done.stderr
    assert "did you mean 'NVIDIA_TESLA_T4'?" in done.stderr


@pytest.mark.parametrize("arguments", [(), ("chekc",), ("plan",), ("plan", "x", "--output", "xml")])
def test_a_wrong_call_is_refused(trainops: Run, arguments: tuple[str, ...]) -> None:
    done = trainops(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: trainops" in done.stderr


def test_an_unknown_experiment_is_refused_with_the_nearest(trainops: Run) -> None:
    for command in ("plan", "check"):
        done = trainops(command, "stdlib_tyni")
        assert done.returncode == 2
        assert "did you mean 'stdlib_tiny'?" in done.stderr


@pytest.mark.parametrize("command", ["check", "init", "plan", "runs", "models"])
def test_every_command_explains_itself(trainops: Run, command: str) -> None:
    done = trainops(command, "--help")
    assert done.returncode == 0
    assert f"usage: trainops {command}" in done.stdout


def test_the_command_line_lists_its_commands(trainops: Run) -> None:
    done = trainops("--help")
    assert done.returncode == 0
    for command in ("check", "init", "plan", "runs", "models"):
        assert command in done.stdout
