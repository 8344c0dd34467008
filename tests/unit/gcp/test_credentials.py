import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth.credentials import AnonymousCredentials

from trainops.errors import AccessError, ConfigError
from trainops.gcp.credentials import credentials_for
from trainops.settings import Settings

CHAIN = ["first@test-llm.iam.gserviceaccount.com", "last@test-llm.iam.gserviceaccount.com"]


@pytest.fixture
def google(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings of Google's cloud, on a machine with the key of a service account."""
    key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    account = {"client_email": "own@test-llm.iam.gserviceaccount.com", "token_uri": "http://127.0.0.1:9/token"}
    file = tmp_path / "key.json"
    file.write_text(json.dumps({"type": "service_account", "private_key": key.decode(), **account}))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    return settings.model_copy(update={"credentials": "google"})


def test_a_laptop_has_no_credentials_of_google(settings: Settings) -> None:
    assert credentials_for(settings, "given").token is None


def test_given_credentials_are_taken_as_they_are(google: Settings) -> None:
    given = AnonymousCredentials()  # type: ignore[no-untyped-call]
    assert credentials_for(google.model_copy(update={"impersonation_chain": CHAIN}), given) is given


def test_the_application_default_ones_are_taken_else(google: Settings) -> None:
    assert credentials_for(google).service_account_email == "own@test-llm.iam.gserviceaccount.com"


@pytest.mark.parametrize("chain", [CHAIN, CHAIN[-1]])
def test_they_act_as_the_last_of_the_impersonation_chain(google: Settings, chain: list[str] | str) -> None:
    credentials = credentials_for(google.model_copy(update={"impersonation_chain": chain}))
    assert credentials.service_account_email == CHAIN[-1]


@pytest.mark.parametrize("chain", [CHAIN, None])
def test_the_quota_project_of_the_environment_is_theirs(google: Settings, chain: list[str] | None) -> None:
    changed = google.model_copy(update={"impersonation_chain": chain, "quota_project": "who-pays"})
    found = credentials_for(changed)
    assert found.quota_project_id == "who-pays"
    assert credentials_for(google.model_copy(update={"quota_project": "who-else-pays"}), found).quota_project_id == (
        "who-else-pays"
    )


def test_without_one_in_the_environment_the_credentials_keep_theirs(
    google: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_QUOTA_PROJECT", "who-pays")
    for chain in (None, CHAIN):
        found = credentials_for(google.model_copy(update={"impersonation_chain": chain}))
        assert found.quota_project_id == "who-pays"


def test_credentials_that_count_against_no_project_refuse_one(google: Settings) -> None:
    anonymous = AnonymousCredentials()  # type: ignore[no-untyped-call]
    with pytest.raises(ConfigError, match="quota_project"):
        credentials_for(google.model_copy(update={"quota_project": "who-pays"}), anonymous)


def test_a_machine_without_credentials_is_told_what_to_run(
    google: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    with pytest.raises(AccessError, match="gcloud auth application-default login"):
        credentials_for(google)
