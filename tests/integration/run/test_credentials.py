"""Who calls Google while a task is deferred: an Airflow connection, its impersonation chain and its quota project."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth import iam

from trainops.errors import AccessError, ConfigError
from trainops.hooks import trainops as hooks
from trainops.hooks.trainops import TrainopsHook
from trainops.policy.record import TaskTry
from trainops.settings import Settings
from trainops.steps.run import Run
from trainops.steps.start import JobRequest, begin
from trainops.triggers.run import RunTrigger

CONNECTION = "google_of_tests"


@pytest.fixture(scope="module")
def key() -> str:
    private = rsa.generate_private_key(65537, 2048)
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return private.private_bytes(encoding, form, serialization.NoEncryption()).decode()


class Deferred:
    """A task of an environment whose calls are made with an Airflow connection, submitted and then deferred."""

    def __init__(self, settings: Settings, vertex_url: str, key: str, patch: pytest.MonkeyPatch) -> None:
        self.settings = settings
        self._url = vertex_url
        self._key = key
        self._patch = patch
        name = uuid4().hex[:8]
        self.own = f"own-{name}@{settings.project}.iam.gserviceaccount.com"
        self.chain = [f"{role}-{name}@{settings.project}.iam.gserviceaccount.com" for role in ("first", "last")]

    def connect(self, **extra: Any) -> None:
        """Give Airflow a connection with a key whose tokens come from the stand-in."""
        info = {
            "type": "service_account", "client_email": self.own, "token_uri": f"{self._url}/token",
            "private_key": self._key, "private_key_id": "1", "project_id": self.settings.project,
        }  # fmt: skip
        held = {"conn_type": "google_cloud_platform", "extra": {"keyfile_dict": json.dumps(info), **extra}}
        self._patch.setenv(f"AIRFLOW_CONN_{CONNECTION.upper()}", json.dumps(held))

    def submit(self, chain: Any = None, code: str = "import time; time.sleep(3)") -> RunTrigger:
        """Submit a job as the operator does, and return the trigger that the task defers to."""
        services = TrainopsHook(None, CONNECTION, chain).services()
        config = {"imageUri": "example/image", "containerCommand": ["python", "-c"], "containerArgs": [code]}
        body = {"scaleTier": "CUSTOM", "masterType": "n1-standard-8", "region": "us-central1", "masterConfig": config}
        request = JobRequest(
            job_key="r-submit", run_key="r", experiment="exp", task="submit", display_name="r", training_input=body
        )
        uri = f"{self.settings.work}/runs/exp/r/submit.json"
        tried = TaskTry(dag_id="d", run_id="r", task_id="submit", try_number=1)
        begin(services.storage, self.settings, uri, request, tried, actor="submit")
        Run(services, uri, actor="submit", say=lambda _: None).advance()
        task = {"dag_id": "d", "run_id": "r", "task_id": "wait", "map_index": -1}
        return RunTrigger(
            record_uri=uri, task=task, until="ended", generation=1, poll_seconds=0.5, gcp_conn_id=CONNECTION,
            impersonation_chain=chain,
        )  # fmt: skip

    def in_another_process(self, trigger: RunTrigger) -> RunTrigger:
        """The trigger as a triggerer builds it from the database, with no token of the process before."""
        self._patch.setattr(hooks, "_SHARED", {})
        _, arguments = trigger.serialize()
        return RunTrigger(**json.loads(json.dumps(arguments)))

    def entries(self, event: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = httpx.get(f"{self._url}/journal?event={event}").json()["entries"]
        return found

    def calls(self) -> set[tuple[str, str]]:
        """Caller and quota project of every call for jobs of this project."""
        mine = [entry for entry in self.entries("call") if f"/{self.settings.project}/" in entry["path"]]
        return {(entry["caller"], entry["quota_project"]) for entry in mine}

    def chains(self) -> list[list[str]]:
        """The chain of every request for a token that began with the connection's own account."""
        return [entry["chain"] for entry in self.entries("token_request") if entry["chain"][0] == self.own]


@pytest.fixture
def deferred(
    vertex_settings: Settings, vertex_url: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Deferred:
    monkeypatch.setenv("TRAINOPS_CONFIGS", str(tmp_path))
    monkeypatch.setenv("TRAINOPS_ENVIRONMENT", "test")
    monkeypatch.setattr(hooks, "_SHARED", {})
    # google-auth takes the address of the IAM Credentials API from nowhere else.
    monkeypatch.setattr(iam, "_IAM_ENDPOINT", vertex_url + "/v1/projects/-/serviceAccounts/{}:generateAccessToken")
    (tmp_path / "gpu_pools.yaml").write_text(
        "pools: [{accelerator: NVIDIA_TESLA_T4, region: us-central1, provisioning: standard, quota: 2}]\n"
    )
    (tmp_path / "environments").mkdir()
    settings = vertex_settings.model_copy(update={"credentials": "google", "connection": CONNECTION})
    values = settings.model_dump(by_alias=True, mode="json", exclude_none=True)
    del values["name"]
    (tmp_path / "environments" / "test.yaml").write_text(yaml.safe_dump(values))
    return Deferred(settings, vertex_url, key, monkeypatch)


def event_of(trigger: RunTrigger) -> dict[str, Any]:
    async def run() -> list[Any]:
        return [event async for event in trigger.run()]

    (event,) = asyncio.run(run())
    payload: dict[str, Any] = event.payload
    return payload


@pytest.mark.case("C044")
@pytest.mark.case("C045")
@pytest.mark.case("C046")
@pytest.mark.case("C113")
def test_the_trigger_acts_as_the_operator_did_also_after_a_restart_of_the_triggerer(deferred: Deferred) -> None:
    deferred.connect(quota_project_id="who-pays")
    trigger = deferred.submit(deferred.chain)
    before = len(deferred.chains())
    assert event_of(deferred.in_another_process(trigger))["status"] == "done"
    assert deferred.calls() == {(deferred.chain[-1], "who-pays")}
    impersonated = [chain for chain in deferred.chains() if len(chain) > 1]
    assert {tuple(chain) for chain in impersonated} == {(deferred.own, *deferred.chain)}
    assert len(deferred.chains()) > before, "the new process asked for a token of its own"


def test_one_account_to_act_as_is_a_chain_too_and_without_a_chain_the_connection_acts_for_itself(
    deferred: Deferred,
) -> None:
    deferred.connect()
    assert event_of(deferred.in_another_process(deferred.submit(deferred.chain[-1])))["status"] == "done"
    assert deferred.calls() == {(deferred.chain[-1], "")}
    assert [deferred.own, deferred.chain[-1]] in deferred.chains()


def test_the_chain_of_the_connection_itself_survives_as_well(deferred: Deferred) -> None:
    deferred.connect(impersonation_chain=",".join(deferred.chain))
    assert event_of(deferred.in_another_process(deferred.submit()))["status"] == "done"
    assert deferred.calls() == {(deferred.chain[-1], "")}
    assert [deferred.own, *deferred.chain] in deferred.chains()


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "answer", "method": "token", "status": 503, "count": 18},
        {"kind": "token_failure", "answer": "not_json", "count": 6},
    ],
)
def test_a_token_that_cannot_be_had_for_a_while_is_waited_for(
    deferred: Deferred, vertex_faults: Callable[..., None], fault: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    deferred.connect()
    trigger = deferred.in_another_process(deferred.submit())
    vertex_faults(**fault)
    assert event_of(trigger)["status"] == "done"
    assert "the access token could not be had" in capsys.readouterr().out


def test_a_key_that_was_deleted_ends_the_wait_at_once_and_says_what_to_do_and_a_new_key_needs_no_restart(
    deferred: Deferred, vertex_faults: Callable[..., None], key: str
) -> None:
    deferred.connect()
    trigger = deferred.in_another_process(deferred.submit())
    vertex_faults("token_failure", answer="invalid_grant", count=None)
    event = event_of(trigger)
    assert event["status"] == "error"
    assert "invalid_grant: Invalid JWT Signature." in event["message"]
    assert "give the Airflow connection a new key" in event["message"]
    assert key.splitlines()[1] not in json.dumps(event)


def test_a_changed_connection_is_another_one_and_an_unchanged_one_is_shared(deferred: Deferred) -> None:
    deferred.connect()
    services = hooks.shared_services(None, CONNECTION, deferred.chain)
    assert hooks.shared_services(None, CONNECTION, deferred.chain) is services
    assert hooks.shared_services(None, CONNECTION, deferred.chain[-1]) is not services
    deferred.connect(quota_project_id="who-pays")
    assert hooks.shared_services(None, CONNECTION, deferred.chain) is not services


def test_an_account_that_may_not_be_acted_as_is_a_matter_of_access(
    deferred: Deferred, vertex_faults: Callable[..., None]
) -> None:
    deferred.connect()
    vertex_faults("answer", method="generateAccessToken", status=403, message="Permission denied", count=None)
    with pytest.raises(AccessError, match=r"roles/iam\.serviceAccountTokenCreator"):
        TrainopsHook(None, CONNECTION, deferred.chain).services().vertex("us-central1").list()


@pytest.mark.parametrize("held", ["not json", "{}"])
def test_a_connection_with_a_broken_key_is_the_users_mistake(
    deferred: Deferred, held: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = {"conn_type": "google_cloud_platform", "extra": {"keyfile_dict": held, "num_retries": 1}}
    monkeypatch.setenv(f"AIRFLOW_CONN_{CONNECTION.upper()}", json.dumps(broken))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("CLOUDSDK_CONFIG", "/nonexistent")
    with pytest.raises(ConfigError, match="google_of_tests"):
        TrainopsHook(None, CONNECTION).credentials()


def test_a_connection_that_there_is_not_is_the_users_mistake(deferred: Deferred) -> None:
    with pytest.raises(ConfigError, match="there is no such Airflow connection"):
        TrainopsHook(None, "nobody_made_it").credentials()
