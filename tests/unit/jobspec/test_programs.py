from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trainops.errors import ConfigError
from trainops.jobspec import installation
from trainops.jobspec.limits import ARGUMENT_CHARACTERS
from trainops.jobspec.translate import Translation

Translate = Callable[..., Translation]
NO_PACKAGE: dict[str, Any] = {"runtimeVersion": None, "packageUris": None, "pythonModule": None}


def _container(**config: Any) -> dict[str, Any]:
    return NO_PACKAGE | {"masterConfig": {"imageUri": "gcr.io/p/i", **config}}


def _pool(found: Translation) -> dict[str, Any]:
    pool: dict[str, Any] = found.job["jobSpec"]["workerPoolSpecs"][0]
    return pool


@pytest.mark.case("C070")
def test_the_job_directory_is_the_last_argument_and_the_output(translated: Translate) -> None:
    found = translated({"args": ["--a"], "jobDir": "gs://b/out"})
    assert _pool(found)["pythonPackageSpec"]["args"] == ["--a", "--job-dir=gs://b/out"]
    assert found.job["jobSpec"]["baseOutputDirectory"] == {"outputUriPrefix": "gs://b/out"}


@pytest.mark.parametrize("args", [["--job-dir=gs://b/own"], ["--job-dir", "gs://b/own"]])
def test_a_job_directory_in_the_arguments_is_not_doubled(translated: Translate, args: list[str]) -> None:
    found = translated({"args": args, "jobDir": "gs://b/out"})
    assert _pool(found)["pythonPackageSpec"]["args"] == args


@pytest.mark.case("C070")
def test_a_container_gets_arguments_and_job_directory(translated: Translate) -> None:
    found = translated(_container() | {"args": ["--a"], "jobDir": "gs://b/out"})
    assert _pool(found)["containerSpec"] == {"imageUri": "gcr.io/p/i", "args": ["--a", "--job-dir=gs://b/out"]}


def test_a_container_gets_its_own_command_and_arguments(translated: Translate) -> None:
    found = translated(_container(containerCommand=["sh"], containerArgs=["-c", "x"]))
    assert _pool(found)["containerSpec"] == {"imageUri": "gcr.io/p/i", "command": ["sh"], "args": ["-c", "x"]}


OWN: dict[str, Any] = {"runtimeVersion": None, "masterConfig": {"imageUri": "gcr.io/p/i"}}


@pytest.mark.case("C070")
def test_a_package_on_an_own_image_is_installed_by_the_container(translated: Translate) -> None:
    found = translated(OWN | {"args": ["--a"], "jobDir": "gs://b/out"}, env={"A": "1"})
    pool = _pool(found)
    assert "pythonPackageSpec" not in pool
    assert pool["containerSpec"] == {
        "imageUri": "gcr.io/p/i",
        "command": ["python3", "-c", installation.program(), "trainer.task", "gs://my-bucket/trainer.tar.gz", "--"],
        "args": ["--a", "--job-dir=gs://b/out"],
        "env": [{"name": "A", "value": "1"}],
    }
    targets = {note.field: note.target for note in found.notes if note.field in {"packageUris", "pythonModule", "args"}}
    container = "jobSpec.workerPoolSpecs[].containerSpec"
    assert targets == {
        "packageUris": f"{container}.command",
        "pythonModule": f"{container}.command",
        "args": f"{container}.args",
    }


def test_every_pool_of_an_own_image_installs_the_package(translated: Translate) -> None:
    found = translated(OWN | {"scaleTier": "STANDARD_1"})
    pools = found.job["jobSpec"]["workerPoolSpecs"]
    assert len(pools) == 3
    for pool in pools:
        assert installation.installed_packages(pool["containerSpec"]) == ("gs://my-bucket/trainer.tar.gz",)


def test_a_command_of_somebody_else_installs_nothing() -> None:
    assert installation.installed_packages({"imageUri": "i"}) == ()
    assert installation.installed_packages({"imageUri": "i", "command": ["python3", "-c", "pass"]}) == ()


@pytest.mark.parametrize("lacking", ["pythonModule", "packageUris"])
def test_half_a_package_on_a_container_says_that_it_needs_none(translated: Translate, lacking: str) -> None:
    with pytest.raises(ConfigError, match=f"without {lacking}; .*out, and the container runs .*or give {lacking} too"):
        translated(OWN | {lacking: None})


def test_a_job_without_runtime_is_told_those_that_its_machines_have(translated: Translate) -> None:
    with pytest.raises(ConfigError, match=r"runtime versions with a tpu image: 2\.15, 2\.12\)"):
        translated({"scaleTier": "BASIC_TPU", "runtimeVersion": None})
    with pytest.raises(ConfigError, match=r"runtime versions with a cpu image: 2\.17, .*; .* with a gpu image: 2\.17"):
        gpus = {"scaleTier": "CUSTOM", "masterType": "n1-standard-4", "workerType": "g2-standard-4", "workerCount": 1}
        translated(gpus | {"runtimeVersion": None})


def test_a_container_with_a_package_takes_no_command_of_its_own(translated: Translate) -> None:
    with pytest.raises(ConfigError) as caught:
        translated(OWN | {"masterConfig": {"imageUri": "gcr.io/p/i", "containerCommand": ["sh"]}})
    assert caught.value.key == "masterConfig.containerCommand"


def test_variables_reach_every_pool(translated: Translate) -> None:
    found = translated({"scaleTier": "STANDARD_1", "vertex": {"env": {"A": "1", "B": "2"}}}, env={"B": "3"})
    for pool in found.job["jobSpec"]["workerPoolSpecs"]:
        assert pool["pythonPackageSpec"]["env"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "3"}]
    assert any(note.field == "vertex.env" and note.verdict == "changed" for note in found.notes)


@pytest.mark.case("C070")
@pytest.mark.parametrize(
    ("fields", "key"),
    [
        (_container(containerArgs=["x"]) | {"args": ["y"]}, "args"),
        ({"masterConfig": {"containerArgs": ["x"]}}, "masterConfig.containerArgs"),
        ({"pythonModule": None}, "pythonModule"),
        ({"packageUris": []}, "packageUris"),
        (_container() | {"pythonModule": "m"}, "pythonModule"),
        (_container() | {"packageUris": ["gs://b/a.tar.gz"]}, "packageUris"),
        ({"packageUris": ["gs://b/a.tar.gz"] * 101}, "packageUris"),
        ({"packageUris": ["dist/a.tar.gz"]}, "packageUris.0"),
        ({"packageUris": ["gs://b/a.tar.gz", "gs://b/a.zip"]}, "packageUris.1"),
        ({"args": ["x" * ARGUMENT_CHARACTERS, "y"]}, "args"),
        (_container(containerArgs=["x" * (ARGUMENT_CHARACTERS + 1)]), "masterConfig.containerArgs"),
        ({"jobDir": "/tmp/out"}, "jobDir"),
        ({"vertex": {"env": {"A-B": "1"}}}, "vertex.env.A-B"),
        ({"vertex": {"env": {f"V{i}": "" for i in range(101)}}}, "vertex.env"),
    ],
)
def test_programs_that_cannot_run_are_refused(translated: Translate, fields: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        translated(fields)
    assert caught.value.key == key


def test_arguments_may_just_reach_their_limit(translated: Translate) -> None:
    assert translated({"args": ["x" * ARGUMENT_CHARACTERS]}).region == "us-central1"


@pytest.mark.case("C085")
@pytest.mark.parametrize(("value", "verdict"), [(True, "mapped"), (False, "changed")])
def test_the_name_of_the_chief_is_noted(translated: Translate, value: bool, verdict: str) -> None:
    notes = translated(_container() | {"useChiefInTfConfig": value}).notes
    assert [note.verdict for note in notes if note.field == "useChiefInTfConfig"] == [verdict]
