from collections.abc import Iterator
from typing import Any

import pytest
import requests

from trainops.gcp import project as project_module
from trainops.gcp.project import Project
from trainops.gcp.session import Session
from trainops.settings import Settings
from trainops.steps.project_needs import SERVICES, project_needs
from trainops.steps.provision import compare, provide

JOBS = "trainops@test-llm.iam.gserviceaccount.com"


@pytest.fixture
def project(google: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.setattr(project_module, "PAUSE_SECONDS", 0.01)
    project = Project(Session(requests.Session()), "test-llm", google.addresses)
    yield project
    project.close()


def test_an_empty_project_lacks_everything_and_comparing_changes_nothing(
    project: Project, google: Any, settings: Settings
) -> None:
    found = list(compare(project, project_needs(settings)))
    assert {finding.state for finding in found} == {"missing"}
    assert [finding.kind for finding in found].count("API") == len(SERVICES)
    assert google.writes == []


def test_what_is_missing_is_created_and_the_second_time_nothing_is(
    project: Project, google: Any, settings: Settings
) -> None:
    needs = project_needs(settings)
    assert {finding.state for finding in provide(project, needs)} == {"present"}
    assert google.enabled == set(SERVICES)
    work = google.buckets["test-llm-llm-work"]
    assert work["location"] == "EUROPE-WEST4"
    assert work["iamConfiguration"] == {
        "uniformBucketLevelAccess": {"enabled": True},
        "publicAccessPrevention": "enforced",
    }
    assert [rule["action"]["type"] for rule in work["lifecycle"]["rule"]] == [
        "AbortIncompleteMultipartUpload",
        "Delete",
    ]
    models = google.buckets["test-llm-llm-models"]
    assert [rule["action"]["type"] for rule in models["lifecycle"]["rule"]] == ["AbortIncompleteMultipartUpload"]
    assert list(google.accounts) == [JOBS]
    google.writes.clear()
    assert {finding.state for finding in provide(project, needs)} == {"present"}
    assert google.writes == []


def test_roles_are_granted_on_project_buckets_and_account(project: Project, google: Any, settings: Settings) -> None:
    list(provide(project, project_needs(settings, "airflow@test-llm.iam.gserviceaccount.com")))
    held = {
        (key, binding["role"], member.removeprefix("serviceAccount:").partition("@")[0])
        for key, policy in google.policies.items()
        for binding in policy["bindings"]
        for member in binding["members"]
    }
    buckets = ("bucket test-llm-llm-work", "bucket test-llm-llm-models")
    assert held == {
        ("test-llm", "roles/logging.logWriter", "trainops"),
        ("test-llm", "roles/aiplatform.user", "airflow"),
        ("test-llm", "roles/logging.viewer", "airflow"),
        (JOBS, "roles/iam.serviceAccountUser", "airflow"),
        *((bucket, "roles/storage.objectUser", account) for bucket in buckets for account in ("trainops", "airflow")),
    }


def test_a_policy_keeps_what_others_wrote(project: Project, google: Any) -> None:
    condition = {"title": "until 2027", "expression": "request.time < timestamp('2027-01-01T00:00:00Z')"}
    others = [
        {"role": "roles/owner", "members": ["user:somebody@example.com"]},
        {"role": "roles/aiplatform.user", "members": [f"serviceAccount:{JOBS}"], "condition": condition},
    ]
    google.policies["test-llm"] = {"etag": "7", "bindings": list(others), "version": 3}
    assert not project.holds("project", "test-llm", "roles/aiplatform.user", f"serviceAccount:{JOBS}")
    project.grant("project", "test-llm", "roles/aiplatform.user", f"serviceAccount:{JOBS}")
    own = {"role": "roles/aiplatform.user", "members": [f"serviceAccount:{JOBS}"]}
    assert google.policies["test-llm"] == {"etag": "8", "bindings": [*others, own], "version": 3}


@pytest.mark.parametrize(
    "refusal", [(409, "There were concurrent policy changes."), (400, f"Service account {JOBS} does not exist.")]
)
def test_a_policy_that_cannot_be_written_yet_is_read_and_written_again(
    project: Project, google: Any, refusal: tuple[int, str]
) -> None:
    status, message = refusal
    google.refusals["test-llm:setIamPolicy"] = [(status, {"error": {"message": message}})] * 2
    project.grant("project", "test-llm", "roles/logging.logWriter", f"serviceAccount:{JOBS}")
    assert project.holds("project", "test-llm", "roles/logging.logWriter", f"serviceAccount:{JOBS}")


def test_a_bucket_that_exists_gains_what_it_lacks_and_keeps_its_own_rules(
    project: Project, google: Any, settings: Settings
) -> None:
    own = {"action": {"type": "SetStorageClass", "storageClass": "NEARLINE"}, "condition": {"age": 90}}
    google.buckets["test-llm-llm-work"] = {
        "name": "test-llm-llm-work",
        "location": "EUROPE-WEST4",
        "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": False}},
        "lifecycle": {"rule": [own]},
    }
    (need,) = [need for need in project_needs(settings) if need.name == "test-llm-llm-work"]
    (before,) = compare(project, [need])
    assert before.problem == (
        "access control lists are on; no lifecycle rule that ends unfinished uploads after 7 days"
        " and deletes checkpoints (runs/*.pt) after 30 days"
    )
    (after,) = provide(project, [need])
    assert after.state == "present"
    bucket = google.buckets["test-llm-llm-work"]
    assert bucket["lifecycle"]["rule"][0] == own
    assert bucket["iamConfiguration"]["uniformBucketLevelAccess"]["enabled"]


def test_a_bucket_in_another_place_is_told_and_left(project: Project, google: Any, settings: Settings) -> None:
    (need,) = [need for need in project_needs(settings) if need.name == "test-llm-llm-models"]
    list(provide(project, [need]))
    google.buckets["test-llm-llm-models"]["location"] = "US"
    (finding,) = provide(project, [need])
    assert (finding.state, finding.problem) == ("missing", "lies in US, not europe-west4: a bucket cannot be moved")


def test_what_may_not_be_asked_is_unknown_and_the_rest_goes_on(
    project: Project, google: Any, settings: Settings
) -> None:
    google.refusals["/storage.googleapis.com"] = [(403, {"error": {"message": "Permission denied to get service"}})]
    found = list(provide(project, project_needs(settings)))
    (unknown,) = [finding for finding in found if finding.state != "present"]
    assert (unknown.name, unknown.state) == ("storage.googleapis.com", "unknown")
    assert "Permission denied to get service" in unknown.problem


def test_what_google_refuses_to_create_is_told_with_its_words(
    project: Project, google: Any, settings: Settings
) -> None:
    google.refusals["/storage/v1/b"] = [(409, {"error": {"message": "The requested bucket name is not available."}})]
    found = list(provide(project, project_needs(settings)))
    refused = [finding for finding in found if finding.state == "missing"]
    assert refused[0].name == "test-llm-llm-work"
    assert "bucket name is not available" in refused[0].problem
    assert [finding.kind for finding in refused[1:]] == ["role"]


def test_without_a_service_account_vertexs_own_gets_the_jobs_roles(settings: Settings) -> None:
    bare = settings.model_copy(update={"service_account": None})
    needs = project_needs(bare)
    assert {need.kind for need in needs} == {"API", "bucket", "role"}
    roles = [need.name for need in needs if need.kind == "role"]
    assert all("service-100000000001@gcp-sa-aiplatform-cc.iam.gserviceaccount.com" in role for role in roles)


def test_the_account_at_the_end_of_the_impersonation_chain_is_airflows(settings: Settings) -> None:
    chain = ["a@test-llm.iam.gserviceaccount.com", "airflow@test-llm.iam.gserviceaccount.com"]
    needs = project_needs(settings.model_copy(update={"impersonation_chain": chain}))
    accounts = [need.name for need in needs if need.kind == "service account"]
    assert accounts == [JOBS, chain[-1]]
    assert f"roles/iam.serviceAccountUser on {JOBS} for {chain[-1]}" in [need.name for need in needs]


def test_commands_are_gclouds(settings: Settings) -> None:
    commands = {need.name: need.command for need in project_needs(settings)}
    assert commands["aiplatform.googleapis.com"] == (
        "gcloud services enable aiplatform.googleapis.com --project test-llm"
    )
    assert commands[JOBS] == (
        "gcloud iam service-accounts create trainops --project test-llm --display-name 'Training jobs of Trainops'"
    )
    bucket = commands["test-llm-llm-models"]
    assert bucket.startswith('echo \'{"rule": [')
    assert "gcloud storage buckets create gs://test-llm-llm-models --project test-llm" in bucket
