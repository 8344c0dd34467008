"""The environment file says where Trainops works; nothing else tells a laptop from the cloud."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainops.errors import ConfigError
from trainops.settings import (
    Settings,
    configs_folder,
    environment_name,
    load_settings,
    project_root,
    trainer_folder,
)

FILLED: dict[str, Any] = {
    "project": "my-project",
    "project_number": "123",
    "region": "europe-west4",
    "image": {"cpu": "europe-docker.pkg.dev/my-project/t/cpu:1", "gpu": "europe-docker.pkg.dev/my-project/t/gpu:1"},
}


@pytest.fixture
def environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAINOPS_CONFIGS", str(tmp_path))
    monkeypatch.delenv("TRAINOPS_ENVIRONMENT", raising=False)
    folder = tmp_path / "environments"
    folder.mkdir()
    return folder


def write(folder: Path, file: str, /, **changes: Any) -> Path:
    path = folder / f"{file}.yaml"
    path.write_text(yaml.safe_dump({**FILLED, **changes}), encoding="utf-8")
    return path


def test_the_local_environment_of_the_project_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAINOPS_CONFIGS", raising=False)
    settings = load_settings("local")
    assert (settings.name, settings.project, settings.credentials) == ("local", "local-llm", "anonymous")
    assert (settings.work, settings.models) == ("gs://local-llm-work", "gs://local-llm-models")


def test_the_cloud_environment_names_every_placeholder_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAINOPS_CONFIGS", raising=False)
    with pytest.raises(ConfigError, match="placeholders are not filled in") as caught:
        load_settings("gcp")
    assert (caught.value.key, caught.value.value) == ("project", "YOUR_PROJECT")
    for key in ("project_number (YOUR_NUMBER)", "service_account (YOUR_PROJECT)", "image.gpu (YOUR_PROJECT)"):
        assert key in caught.value.next_step


def test_the_cloud_environment_loads_once_it_is_filled_in(environments: Path) -> None:
    text = (project_root() / "include/configs/environments/gcp.yaml").read_text(encoding="utf-8")
    filled = text.replace("YOUR_PROJECT", "my-project").replace("YOUR_NUMBER", "123")
    (environments / "gcp.yaml").write_text(filled, encoding="utf-8")
    settings = load_settings("gcp")
    assert settings.work == "gs://my-project-llm-work"
    assert settings.service_account == "trainops@my-project.iam.gserviceaccount.com"
    assert settings.vertex_endpoint("europe-west4") == "https://europe-west4-aiplatform.googleapis.com"
    assert settings.logging_endpoint() == "https://logging.googleapis.com"


def test_the_environment_variable_names_the_environment(environments: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(environments, "other")
    assert environment_name() == "local"
    monkeypatch.setenv("TRAINOPS_ENVIRONMENT", "other")
    assert load_settings().name == "other"
    assert environment_name("given") == "given"


def test_an_unknown_environment_is_refused_with_the_nearest(environments: Path) -> None:
    write(environments, "staging")
    write(environments, "local")
    with pytest.raises(ConfigError) as caught:
        load_settings("stagign")
    assert (caught.value.value, caught.value.nearest) == ("stagign", "staging")
    assert caught.value.allowed == ["local", "staging"]


@pytest.mark.parametrize("name", ["../local", "", "a/b"])
def test_a_name_that_is_a_path_names_no_environment(environments: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="no such environment"):
        load_settings(name or "..")


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"project": "My Project"}, "project"),
        ({"project_number": 123}, "project_number"),
        ({"region": "europe"}, "region"),
        ({"buckets": {"work": "gs://x", "models": "my-models"}}, "buckets.work"),
        ({"credentials": "anonymus"}, "credentials"),
        ({"substitute": "always"}, "substitute"),
        ({"endpoints": {"vertex": "localhost:1"}}, "endpoints.vertex"),
        ({"endpoints": {"vertx": "http://localhost:1"}}, "endpoints.vertx"),
        ({"service_account": "trainops"}, "service_account"),
        ({"name": "elsewhere"}, "name"),
        ({"regoin": "europe-west4"}, "regoin"),
    ],
)
def test_a_wrong_environment_is_refused_with_its_key(environments: Path, changes: dict[str, Any], key: str) -> None:
    path = write(environments, "x", **changes)
    with pytest.raises(ConfigError) as caught:
        load_settings("x")
    assert (caught.value.source, caught.value.key) == (str(path), key)


def test_buckets_may_have_any_name(environments: Path) -> None:
    write(environments, "x", buckets={"work": "w-bucket", "models": "m-bucket"})
    assert load_settings("x").models == "gs://m-bucket"


def test_endpoints_may_stand_in_the_file(environments: Path) -> None:
    write(environments, "x", endpoints={"vertex": "http://127.0.0.1:1", "logging": "http://127.0.0.1:2"})
    settings = load_settings("x")
    assert settings.vertex_endpoint("us-central1") == "http://127.0.0.1:1"
    assert settings.logging_endpoint() == "http://127.0.0.1:2"
    assert settings.endpoints.storage is None


def test_endpoints_are_read_from_the_local_cloud_each_time(environments: Path, tmp_path: Path) -> None:
    file = tmp_path / "endpoints.json"
    write(environments, "x", endpoints=str(file))
    settings = load_settings("x")
    for port in (8801, 9901):
        file.write_text(json.dumps({"vertex": f"http://127.0.0.1:{port}", "airflow": "http://x", "pid": 1}))
        assert settings.vertex_endpoint() == f"http://127.0.0.1:{port}"


def test_a_local_cloud_that_is_not_running_is_told(environments: Path, tmp_path: Path) -> None:
    path = write(environments, "x", endpoints=str(tmp_path / "endpoints.json"))
    settings = load_settings("x")
    with pytest.raises(ConfigError, match="the local cloud is not running") as caught:
        settings.vertex_endpoint()
    assert (caught.value.source, caught.value.key) == (str(path), "endpoints")
    assert "make up" in caught.value.next_step


def test_settings_cannot_be_changed() -> None:
    settings = Settings.model_validate({**FILLED, "name": "x"})
    with pytest.raises(ValueError, match="frozen"):
        settings.__setattr__("region", "us-central1")


def test_folders_are_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TRAINOPS_CONFIGS", raising=False)
    monkeypatch.delenv("TRAINOPS_TRAINER", raising=False)
    assert configs_folder() == project_root() / "include" / "configs"
    assert trainer_folder() == project_root() / "trainer"
    monkeypatch.setenv("TRAINOPS_CONFIGS", str(tmp_path / "c"))
    monkeypatch.setenv("TRAINOPS_TRAINER", str(tmp_path / "t"))
    assert (configs_folder(), trainer_folder()) == (tmp_path / "c", tmp_path / "t")
