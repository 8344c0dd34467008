"""What a token endpoint can answer, over HTTP through Google's own library, and what is made of it."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth import _exponential_backoff, iam, impersonated_credentials
from google.oauth2 import service_account

from trainops.errors import AccessError, NotSentError, ServiceError
from trainops.gcp.vertex import Vertex
from trainops.settings import Settings

OWN, LAST = "own@test-llm.iam.gserviceaccount.com", "last@test-llm.iam.gserviceaccount.com"
NAME = "projects/1/locations/us-central1/customJobs/2"
TOKEN = (200, {"access_token": "t", "expires_in": 3600})
JOB = (200, {"name": NAME})


@pytest.fixture(scope="module")
def key() -> str:
    private = rsa.generate_private_key(65537, 2048)
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return private.private_bytes(encoding, form, serialization.NoEncryption()).decode()


@pytest.fixture
def own(key: str, server: Any) -> Any:
    info = {"client_email": OWN, "token_uri": f"{server.url}/token", "private_key": key}
    return service_account.Credentials.from_service_account_info(  # type: ignore[no-untyped-call]
        info, scopes=["https://www.googleapis.com/auth/cloud-platform"]
    )


@pytest.fixture
def google(settings: Settings, server: Any, monkeypatch: pytest.MonkeyPatch) -> Settings:
    # google-auth has no setting for the address of the IAM Credentials API, nor for its pauses between tries.
    monkeypatch.setattr(iam, "_IAM_ENDPOINT", server.url + "/accounts/{}:generateAccessToken")
    monkeypatch.setattr(_exponential_backoff, "time", SimpleNamespace(sleep=lambda _: None))
    return settings.model_copy(update={"credentials": "google"})


@pytest.fixture
def vertex(google: Settings, own: Any) -> Iterator[Vertex]:
    vertex = Vertex.connect(google, own)
    yield vertex
    vertex.close()


@pytest.fixture
def acting(google: Settings, own: Any) -> Iterator[Vertex]:
    credentials = impersonated_credentials.Credentials(  # type: ignore[no-untyped-call]
        source_credentials=own, target_principal=LAST, delegates=[], target_scopes=["s"]
    )
    vertex = Vertex.connect(google, credentials)
    yield vertex
    vertex.close()


def failed(vertex: Vertex) -> ServiceError:
    with pytest.raises(ServiceError) as raised:
        vertex.get(NAME)
    return raised.value


MAY_PASS = [
    [(503, "unavailable")] * 3,
    [(500, {"error": "internal_failure"})] * 3,
    [(429, {"error": {"code": 429, "message": "slow down"}})] * 3,
    [(200, "<html>a login page of a hotel</html>")],
    [(200, {"no": "token"})],
    [(200, [])],
    [(200, {"access_token": "t", "expires_in": "soon"})],
    [(400, {"error": "temporarily_unavailable"})] * 3,
    [(404, "a proxy that knows no such host")],
]


@pytest.mark.parametrize("replies", MAY_PASS)
def test_an_answer_that_may_pass_is_asked_for_again_and_then_works(
    vertex: Vertex, server: Any, replies: list[tuple[int, Any]]
) -> None:
    server.replies.extend(replies)
    error = failed(vertex)
    assert type(error) is NotSentError
    assert "access token could not be had" in str(error)
    server.replies[:] = [TOKEN, JOB]
    assert vertex.get(NAME) == {"name": NAME}
    assert server.asked[-1].headers["authorization"] == "Bearer t"


def test_no_answer_of_the_token_endpoint_may_pass(google: Settings, own: Any) -> None:
    own._token_uri = "http://127.0.0.1:9/token"
    vertex = Vertex.connect(google, own)
    assert type(failed(vertex)) is NotSentError
    vertex.close()


FOR_GOOD = [
    ("invalid_grant", "Invalid JWT Signature.", "gcloud auth application-default login"),
    ("invalid_grant", "Token must be a short-lived token and in a reasonable timeframe.", "clock is wrong"),
    ("invalid_client", "The OAuth client was not found.", "new key"),
    ("invalid_scope", "Empty or missing scope", "cloud-platform"),
]


@pytest.mark.parametrize(("error", "description", "step"), FOR_GOOD)
def test_a_refusal_for_good_says_what_to_do(
    vertex: Vertex, server: Any, error: str, description: str, step: str
) -> None:
    server.replies.append((400, {"error": error, "error_description": description}))
    told = failed(vertex)
    assert type(told) is AccessError
    assert f"{error}: {description}" in str(told)
    assert step in str(told)


def test_an_account_that_may_not_be_acted_as_names_the_role(acting: Vertex, server: Any) -> None:
    server.replies.append(TOKEN)
    server.refuse(403, "Permission 'iam.serviceAccounts.getAccessToken' denied on resource (or it may not exist).")
    told = failed(acting)
    assert type(told) is AccessError
    assert "iam.serviceAccounts.getAccessToken" in str(told)
    assert "roles/iam.serviceAccountTokenCreator" in str(told)


@pytest.mark.parametrize("reply", [(503, {"error": {"code": 503, "message": "x"}}), (200, "<html>"), (502, "<html>")])
def test_an_impersonation_that_may_pass_is_asked_for_again(acting: Vertex, server: Any, reply: tuple[int, Any]) -> None:
    server.replies.extend([TOKEN, reply])
    assert type(failed(acting)) is NotSentError


def test_neither_key_nor_token_is_in_what_is_told(vertex: Vertex, server: Any, key: str) -> None:
    server.replies.append((400, {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}))
    told = str(failed(vertex))
    assert server.asked[0].body["assertion"] not in told
    assert key.splitlines()[1] not in told
