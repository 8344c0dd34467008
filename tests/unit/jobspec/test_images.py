from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trainops.errors import ConfigError
from trainops.jobspec.images import Images
from trainops.jobspec.installation import installed_packages
from trainops.jobspec.translate import Translation

Translate = Callable[..., Translation]
REPOSITORY = "us-docker.pkg.dev/vertex-ai/training"
GPU = {"scaleTier": "CUSTOM", "masterType": "g2-standard-4"}


def _image(found: Translation, pool: int = 0) -> str:
    image: str = found.job["jobSpec"]["workerPoolSpecs"][pool]["pythonPackageSpec"]["executorImageUri"]
    return image


def _installing_image(found: Translation, pool: int = 0) -> str:
    container = found.job["jobSpec"]["workerPoolSpecs"][pool]["containerSpec"]
    assert installed_packages(container) == ("gs://my-bucket/trainer.tar.gz",)
    image: str = container["imageUri"]
    return image


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"runtimeVersion": "1.15"}, "tf-cpu.1-15"),
        ({"runtimeVersion": "2.3", "pythonVersion": "3.7"}, "tf-cpu.2-3"),
        ({"runtimeVersion": "2.8", "pythonVersion": "3.10"}, "tf-cpu.2-8.py310"),
        ({"runtimeVersion": "2.8"}, "tf-cpu.2-8"),
        ({"runtimeVersion": "2.17"}, "tf-cpu.2-17.py310"),
        ({"runtimeVersion": "2.3"} | GPU, "tf-gpu.2-3"),
    ],
)
def test_runtime_and_python_choose_the_prebuilt_image(translated: Translate, fields: dict[str, Any], name: str) -> None:
    found = translated(fields, substitute="refuse")
    assert _image(found) == f"{REPOSITORY}/{name}:latest"
    assert any("last day of availability" in note.text for note in found.notes)


@pytest.mark.parametrize(
    ("fields", "name", "changed"),
    [
        ({"runtimeVersion": "1.4"}, "tf-cpu.1-15", ["runtimeVersion", "pythonVersion"]),
        ({"runtimeVersion": "1.13", "pythonVersion": "3.5"}, "tf-cpu.1-15", ["runtimeVersion", "pythonVersion"]),
        ({"runtimeVersion": "1.15", "pythonVersion": "2.7"}, "tf-cpu.1-15", ["pythonVersion"]),
        ({"runtimeVersion": "2.10", "pythonVersion": "3.7"}, "tf-cpu.2-11", ["runtimeVersion"]),
    ],
)
def test_a_runtime_without_image_gets_the_nearest_newer_one(
    translated: Translate, fields: dict[str, Any], name: str, changed: list[str]
) -> None:
    found = translated(fields)
    assert _image(found) == f"{REPOSITORY}/{name}:latest"
    assert [note.field for note in found.notes if note.verdict == "changed"] == changed
    with pytest.raises(ConfigError) as caught:
        translated(fields, substitute="refuse")
    assert caught.value.key == changed[0]


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"runtimeVersion": "2.99"}, "runtimeVersion"),
        ({"runtimeVersion": "2.3", "pythonVersion": "3.10"}, "pythonVersion"),
        ({"runtimeVersion": "2.3", "pythonVersion": "2.7"}, "pythonVersion"),
        ({"masterConfig": {"imageUri": "i"}}, "runtimeVersion"),
        ({"scaleTier": "BASIC_TPU", "runtimeVersion": "1.8"}, "runtimeVersion"),
        ({"runtimeVersion": None}, "runtimeVersion"),
    ],
)
def test_a_runtime_that_cannot_be_is_refused(translated: Translate, fields: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        translated(fields)
    assert caught.value.key == key


def test_images_of_the_environment_go_before_the_runtime(translated: Translate) -> None:
    fields = GPU | {"workerType": "standard", "workerCount": 1, "pythonVersion": "3.7"}
    found = translated(fields, images=Images(cpu="eu/cpu:1", gpu="eu/gpu:1"))
    assert (_installing_image(found, 0), _installing_image(found, 1)) == ("eu/gpu:1", "eu/cpu:1")
    assert {"runtimeVersion", "pythonVersion"} <= {note.field for note in found.notes if note.verdict == "changed"}


def test_an_image_of_the_environment_needs_no_runtime(translated: Translate) -> None:
    found = translated({"runtimeVersion": None}, images=Images(cpu="eu/cpu:1"))
    assert _installing_image(found) == "eu/cpu:1"
    assert ("runtimeVersion", "defaulted") in {(note.field, note.verdict) for note in found.notes}


def test_a_custom_image_goes_before_that_of_the_environment(translated: Translate) -> None:
    fields = {"runtimeVersion": None, "masterConfig": {"imageUri": "own:1"}, "pythonVersion": "3.7"}
    found = translated(fields, images=Images(cpu="eu/cpu:1"))
    assert _installing_image(found) == "own:1"
    assert any("only on its prebuilt images" in note.text for note in found.notes)


def test_an_image_of_ai_platform_becomes_that_of_vertex(translated: Translate) -> None:
    image = "gcr.io/cloud-aiplatform/training/pytorch-gpu.1-7"
    found = translated({"runtimeVersion": None, "masterConfig": {"imageUri": image}})
    assert _image(found) == f"{REPOSITORY}/pytorch-gpu.1-7:latest"


def test_a_pool_may_have_its_own_image_beside_a_runtime(translated: Translate) -> None:
    fields = {"scaleTier": "CUSTOM", "masterType": "standard", "workerType": "standard", "workerCount": 1}
    found = translated(fields | {"workerConfig": {"imageUri": "own:1"}})
    assert (_image(found, 0), _installing_image(found, 1)) == (f"{REPOSITORY}/tf-cpu.2-11:latest", "own:1")


@pytest.mark.parametrize("host", ["us", "europe", "asia"])
@pytest.mark.parametrize("tag", ["", ":latest"])
def test_a_prebuilt_image_of_any_host_runs_the_package_as_vertex_does(
    translated: Translate, host: str, tag: str
) -> None:
    image = f"{host}-docker.pkg.dev/vertex-ai/training/tf-cpu.2-17.py310"
    by_job = translated({"runtimeVersion": None, "masterConfig": {"imageUri": image + tag}})
    by_environment = translated({"runtimeVersion": None}, images=Images(cpu=image + tag))
    assert _image(by_job) == _image(by_environment) == f"{image}:latest"


@pytest.mark.parametrize(
    "image",
    [
        f"{REPOSITORY}/tf-cpu.2-17.py310:20260101",
        f"{REPOSITORY}/tf-cpu.2-17.py310@sha256:0",
        f"{REPOSITORY}/tf-cpu.9-9:latest",
        "me-docker.pkg.dev/vertex-ai/training/tf-cpu.2-17.py310:latest",
        "us-docker.pkg.dev/vertex-ai/trainings/tf-cpu.2-17.py310:latest",
    ],
)
def test_an_image_that_is_not_on_the_list_installs_the_package_itself(translated: Translate, image: str) -> None:
    assert _installing_image(translated({"runtimeVersion": None}, images=Images(cpu=image))) == image
    by_job = translated({"runtimeVersion": None, "masterConfig": {"imageUri": image}})
    assert _installing_image(by_job) == image


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("gpu", "tf-cpu.2-17.py310"),
        ("gpu", "pytorch-xla.2-4.py310"),
        ("gpu", "scikit-learn-cpu.0-23"),
        ("gpu", "tf-tpu.2-15.cp310"),
        ("gpu", "ray-cpu.2-47.py311"),
        ("cpu", "pytorch-tpu.2-2.cp310"),
    ],
)
def test_a_prebuilt_image_of_another_kind_of_machine_is_refused(translated: Translate, kind: str, name: str) -> None:
    image = f"{REPOSITORY}/{name}:latest"
    with pytest.raises(ConfigError, match="cannot use the machines") as caught:
        translated(GPU if kind == "gpu" else {}, images=Images(**{kind: image}))
    assert (caught.value.key, caught.value.value) == (f"image.{kind}", image)


@pytest.mark.parametrize("name", ["tf-gpu.2-17.py310", "pytorch-xla.2-4.py310"])
def test_pools_without_gpus_run_images_for_cpus_and_for_gpus(translated: Translate, name: str) -> None:
    image = f"{REPOSITORY}/{name}:latest"
    assert _image(translated({}, images=Images(cpu=image))) == image


@pytest.mark.parametrize(
    ("image", "machine"),
    [
        (f"{REPOSITORY}/tf-cpu.2-11:latest", "g2-standard-4"),
        (f"{REPOSITORY}/tf-tpu.2-12:latest", "g2-standard-4"),
        (f"{REPOSITORY}/tf-tpu.2-12:latest", "n1-standard-4"),
        ("gcr.io/cloud-aiplatform/training/tf-cpu.2-3:latest", "g2-standard-4"),
    ],
)
def test_an_own_prebuilt_image_is_held_to_the_rule_of_the_environments(
    translated: Translate, image: str, machine: str
) -> None:
    fields = {"scaleTier": "CUSTOM", "masterType": machine, "masterConfig": {"imageUri": image}, "runtimeVersion": None}
    with pytest.raises(ConfigError, match="this prebuilt image cannot use the machines of") as caught:
        translated(fields)
    assert (caught.value.key, caught.value.value) == ("masterConfig.imageUri", image)


def test_a_prebuilt_image_for_gpus_runs_on_cpus_too(translated: Translate) -> None:
    image = f"{REPOSITORY}/tf-gpu.2-11:latest"
    assert _image(translated({"masterConfig": {"imageUri": image}, "runtimeVersion": None})) == image
