import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainops.config.plan import RunMoment, RunPlan
from trainops.config.resolve import resolve
from trainops.errors import ConfigError
from trainops.settings import Settings, load_settings, project_root
from trainops.steps.preflight import preflight

PYPROJECT = """
[build-system]
requires = ["flit_core"]
build-backend = "flit_core.buildapi"

[project]
name = "trainer"
version = "1.2.3"
description = "A tiny trainer"
"""


@pytest.fixture
def trainer(tmp_path: Path) -> Path:
    source = tmp_path / "trainer"
    (source / "src" / "trainer").mkdir(parents=True)
    (source / "pyproject.toml").write_text(PYPROJECT)
    (source / "src" / "trainer" / "__init__.py").write_text('"""A tiny trainer."""\n')
    return source


@pytest.fixture
def configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project's own configs, with a dataset of one file."""
    folder = tmp_path / "configs"
    shutil.copytree(project_root() / "include" / "configs", folder)
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "a.txt").write_text("text")
    (folder / "datasets" / "stdlib.yaml").write_text(yaml.safe_dump({"description": "Texts.", "path": str(texts)}))
    monkeypatch.setenv("TRAINOPS_CONFIGS", str(folder))
    return folder


@pytest.fixture
def settings(configs: Path) -> Settings:
    return load_settings("local")


def plan(settings: Settings, **changes: Any) -> RunPlan:
    moment = RunMoment(dag_id="train_stdlib_tiny", run_id="manual", run_after=datetime(2026, 11, 30, tzinfo=UTC))
    return resolve("stdlib_tiny", {}, moment, settings).model_copy(update=changes)


def test_a_plan_that_can_be_carried_out_is_accepted(settings: Settings, trainer: Path) -> None:
    resolved = plan(settings)
    preflight(resolved, settings, trainer=trainer)
    assert resolved == plan(settings)


def test_a_missing_dataset_is_refused(configs: Path, settings: Settings, trainer: Path) -> None:
    shutil.rmtree(configs.parent / "texts")
    with pytest.raises(ConfigError, match="the dataset's path does not exist") as caught:
        preflight(plan(settings), settings, trainer=trainer)
    assert caught.value.source == str(configs / "datasets" / "stdlib.yaml")


def test_a_trainer_that_does_not_build_is_refused(settings: Settings, trainer: Path) -> None:
    (trainer / "src" / "trainer" / "__init__.py").write_text("def f(:\n")
    with pytest.raises(ConfigError, match="not Python"):
        preflight(plan(settings), settings, trainer=trainer)


def test_the_trainer_of_the_settings_is_the_one_that_is_built(
    settings: Settings, trainer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINOPS_TRAINER", str(trainer))
    (trainer / "pyproject.toml").unlink()
    with pytest.raises(ConfigError, match=r"no pyproject\.toml"):
        preflight(plan(settings), settings)


def test_a_machine_that_does_not_exist_is_refused(settings: Settings, trainer: Path) -> None:
    machines = {**plan(settings).training_input, "masterType": "n1-standard-7"}
    with pytest.raises(ConfigError, match="n1-standard-7") as caught:
        preflight(plan(settings, training_input=machines), settings, trainer=trainer)
    assert caught.value.key == "training_input.masterType"
