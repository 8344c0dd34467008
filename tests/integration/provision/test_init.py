import argparse
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from trainops.commands import init
from trainops.errors import AccessError, ConfigError
from trainops.gcp import project as project_module
from trainops.settings import Settings


@pytest.fixture
def environment(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment `gcp` as a user would have filled it in, and `local` beside it."""
    folder = tmp_path / "configs" / "environments"
    folder.mkdir(parents=True)
    values = settings.model_dump(mode="json", exclude={"name"}, exclude_unset=True)
    (folder / "gcp.yaml").write_text(yaml.safe_dump(values))
    (folder / "local.yaml").write_text(yaml.safe_dump({**values, "credentials": "anonymous"}))
    monkeypatch.setenv("TRAINOPS_CONFIGS", str(tmp_path / "configs"))
    monkeypatch.setattr(project_module, "PAUSE_SECONDS", 0.01)


@pytest.fixture
def application_default(google: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Application default credentials: the key of a service account that gets its tokens on loopback."""
    key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = tmp_path / "key.json"
    file.write_text(
        json.dumps({
            "type": "service_account",
            "project_id": "test-llm",
            "private_key_id": "1",
            "private_key": key.decode(),
            "client_email": "admin@test-llm.iam.gserviceaccount.com",
            "token_uri": f"{google.url}/token",
        })
    )
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    init.add_parser(parser.add_subparsers())
    return parser.parse_args(["init", *words])


@pytest.mark.usefixtures("environment", "application_default")
def test_init_prints_and_apply_creates_and_the_third_time_all_is_there(
    google: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init.run(arguments("--env", "gcp"), google.addresses) == 0
    printed = capsys.readouterr()
    assert "missing  API              aiplatform.googleapis.com" in printed.out
    assert "gcloud services enable aiplatform.googleapis.com --project test-llm" in printed.out
    assert "`--apply` creates them" in printed.err
    assert google.writes == []
    assert init.run(arguments("--env", "gcp", "--apply", "--output", "json"), google.addresses) == 0
    applied = json.loads(capsys.readouterr().out)
    assert (applied["environment"], applied["project"]) == ("gcp", "test-llm")
    assert {need["state"] for need in applied["needs"]} == {"present"}
    google.writes.clear()
    assert init.run(arguments("--env", "gcp", "--apply"), google.addresses) == 0
    assert "missing" not in capsys.readouterr().out
    assert google.writes == []


@pytest.mark.usefixtures("environment", "application_default")
def test_what_could_not_be_created_ends_with_1(google: Any, capsys: pytest.CaptureFixture[str]) -> None:
    google.refusals["/storage/v1/b"] = [(409, {"error": {"message": "The requested bucket name is not available."}})]
    assert init.run(arguments("--env", "gcp", "--apply"), google.addresses) == 1
    printed = capsys.readouterr()
    assert "bucket name is not available" in printed.out
    assert "could not be created" in printed.err


@pytest.mark.usefixtures("environment")
def test_without_credentials_the_commands_are_printed_all_the_same(
    google: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    assert init.run(arguments("--env", "gcp"), google.addresses) == 1
    printed = capsys.readouterr()
    assert "gcloud services enable aiplatform.googleapis.com" in printed.out
    assert "gcloud auth application-default login" in printed.err
    with pytest.raises(AccessError):
        init.run(arguments("--env", "gcp", "--apply"), google.addresses)


@pytest.mark.usefixtures("environment")
def test_a_local_cloud_needs_nothing() -> None:
    with pytest.raises(ConfigError, match="--env gcp") as caught:
        init.run(arguments("--env", "local"))
    assert caught.value.source.endswith("environments/local.yaml")
