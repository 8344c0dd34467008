"""A prebuilt image whose Python is too old for the trainer is refused before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainops.config.gpu_pools import load_gpu_pools
from trainops.config.machines import check_machines
from trainops.config.trainer_python import trainer_python
from trainops.errors import ConfigError
from trainops.settings import load_settings

Change = Callable[..., Path]
REPOSITORY = "us-docker.pkg.dev/vertex-ai/training"
OLD, NEW = f"{REPOSITORY}/pytorch-gpu.2-4.py310", f"{REPOSITORY}/ray-gpu.2-47.py311:latest"


def check(**fields: Any) -> None:
    spec = {"scaleTier": "CUSTOM", "masterType": "n1-standard-4", **fields}
    check_machines(spec, load_settings("local"), load_gpu_pools(), source="e.yaml", key="training_input")


@pytest.mark.parametrize("image", [OLD, f"{OLD}:latest"])
def test_an_image_of_the_environment_with_an_older_python_is_refused(change: Change, image: str) -> None:
    change("environments/local.yaml", {"image.cpu": image})
    with pytest.raises(ConfigError, match=r"needs Python >=3\.11, .* has 3\.10.*trainer/Dockerfile") as caught:
        check()
    assert (caught.value.source, caught.value.key) == ("environment local", "image.cpu")


def test_an_image_of_the_environment_with_a_python_that_will_do_is_taken(change: Change) -> None:
    change("environments/local.yaml", {"image.cpu": NEW})
    check()


@pytest.mark.parametrize(
    ("fields", "key", "value"),
    [
        ({"runtimeVersion": "2.11"}, "runtimeVersion", "2.11"),
        ({"masterConfig": {"imageUri": f"{OLD}:latest"}}, "masterConfig.imageUri", f"{OLD}:latest"),
    ],
)
def test_an_image_of_the_experiment_with_an_older_python_is_refused(
    change: Change, fields: dict[str, Any], key: str, value: str
) -> None:
    change("environments/local.yaml", {"image.cpu": None})
    with pytest.raises(ConfigError, match="the trainer needs Python") as caught:
        check(**fields)
    assert (caught.value.source, caught.value.key) == ("e.yaml", f"training_input.{key}")
    assert caught.value.value == value


@pytest.mark.parametrize(("said", "python"), [(">=3.11.2", "3.11"), ("<3.12", "3.11"), ("==3.11.*", "3.11")])
def test_any_patch_of_a_python_will_do(said: str, python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text(f'[project]\nrequires-python = "{said}"\n', encoding="utf-8")
    monkeypatch.setenv("TRAINOPS_TRAINER", str(tmp_path))
    assert trainer_python().contains(f"{python}.99")


def test_a_trainer_that_says_nothing_takes_any_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINOPS_TRAINER", str(tmp_path))
    assert trainer_python().contains("3.7")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "t"\n', encoding="utf-8")
    assert trainer_python().contains("3.7")


def test_what_is_no_range_of_versions_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nrequires-python = "new"\n', encoding="utf-8")
    monkeypatch.setenv("TRAINOPS_TRAINER", str(tmp_path))
    with pytest.raises(ConfigError, match="requires-python: this is no range of versions; got 'new'"):
        trainer_python()
