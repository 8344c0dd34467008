"""What a Google Cloud project needs for Trainops: each need can say whether it is met, be met, and name its command."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field
from typing import Any, Protocol

from trainops.gcp.project import USER_ACCOUNTS, PolicyOf, Project
from trainops.settings import Settings

SERVICES = (
    "serviceusage.googleapis.com",
    "cloudresourcemanager.googleapis.com",
    "iam.googleapis.com",
    "storage.googleapis.com",
    "logging.googleapis.com",
    "aiplatform.googleapis.com",
)
"""APIs that Trainops calls, those that the others are set up through first."""

CHECKPOINT_DAYS = 30
"""Age in days at which checkpoints are deleted; a job of Vertex AI runs at most seven days."""

UPLOAD_DAYS = 7
"""Age in days at which uploads that were begun and never ended are deleted."""

_ABORT_UPLOADS = {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": UPLOAD_DAYS}}
# Datasets and tokens have no rule here: Google would delete the shards before the manifest that promises them.
_DELETE_CHECKPOINTS = {
    "action": {"type": "Delete"},
    "condition": {"age": CHECKPOINT_DAYS, "matchesPrefix": ["runs/"], "matchesSuffix": [".pt"]},
}


class Need(Protocol):
    """One thing that a project needs."""

    @property
    def kind(self) -> str:
        """API, bucket, service account or role."""

    @property
    def name(self) -> str:
        """Which one."""

    @property
    def command(self) -> str:
        """The gcloud command that does what `meet` does."""

    def lacks(self, project: Project) -> str:
        """Return what is missing, in words; empty when nothing is."""

    def meet(self, project: Project) -> None:
        """Create or complete it; raises the ServiceError family."""


@dataclass(frozen=True)
class ServiceNeed:
    """An enabled API."""

    project_id: str
    name: str
    kind: str = "API"

    @property
    def command(self) -> str:
        """The gcloud command that enables it."""
        return _gcloud("services", "enable", self.name, "--project", self.project_id)

    def lacks(self, project: Project) -> str:
        """Return what is missing, in words."""
        return "" if project.service_enabled(self.name) else "not enabled"

    def meet(self, project: Project) -> None:
        """Enable it."""
        project.enable_service(self.name)


@dataclass(frozen=True)
class BucketNeed:
    """A bucket in the region, with access by IAM alone and its lifecycle rules."""

    project_id: str
    name: str
    region: str
    rules: list[dict[str, Any]] = field(hash=False)
    kind: str = "bucket"

    @property
    def command(self) -> str:
        """The gcloud commands that create it."""
        file = shlex.quote(json.dumps({"rule": self.rules}))
        create = _gcloud(
            "storage", "buckets", "create", f"gs://{self.name}", "--project", self.project_id, "--location",
            self.region, "--uniform-bucket-level-access", "--public-access-prevention",
            "--lifecycle-file", f"{self.name}-lifecycle.json",
        )  # fmt: skip
        return f"echo {file} > {self.name}-lifecycle.json && {create}"

    def lacks(self, project: Project) -> str:
        """Return what is missing, in words."""
        bucket = project.bucket(self.name)
        if bucket is None:
            return "does not exist"
        found = []
        if str(bucket.get("location", "")).lower() != self.region:
            found.append(f"lies in {bucket.get('location')}, not {self.region}: a bucket cannot be moved")
        if not _is_uniform(bucket):
            found.append("access control lists are on")
        if missing := self._missing_rules(bucket):
            found.append("no lifecycle rule that " + " and ".join(_rule_text(rule) for rule in missing))
        return "; ".join(found)

    def meet(self, project: Project) -> None:
        """Create it, or add what is missing to the one that exists; its other rules stay."""
        bucket = project.bucket(self.name)
        uniform = {"uniformBucketLevelAccess": {"enabled": True}}
        if bucket is None:
            access = {**uniform, "publicAccessPrevention": "enforced"}
            rules = {"rule": self.rules}
            location = self.region.upper()
            project.create_bucket({
                "name": self.name,
                "location": location,
                "iamConfiguration": access,
                "lifecycle": rules,
            })
            return
        changes: dict[str, Any] = {} if _is_uniform(bucket) else {"iamConfiguration": uniform}
        if missing := self._missing_rules(bucket):
            changes["lifecycle"] = {"rule": [*bucket.get("lifecycle", {}).get("rule", []), *missing]}
        if changes:
            project.change_bucket(self.name, changes)

    def _missing_rules(self, bucket: dict[str, Any]) -> list[dict[str, Any]]:
        present = bucket.get("lifecycle", {}).get("rule", [])
        return [rule for rule in self.rules if rule not in present]


@dataclass(frozen=True)
class AccountNeed:
    """A service account."""

    project_id: str
    name: str
    display_name: str
    kind: str = "service account"

    @property
    def command(self) -> str:
        """The gcloud command that creates it."""
        account, _, host = self.name.partition("@")
        owner = host.removesuffix(USER_ACCOUNTS) if host.endswith(USER_ACCOUNTS) else self.project_id
        words = ("iam", "service-accounts", "create", account, "--project", owner)
        return _gcloud(*words, "--display-name", self.display_name)

    def lacks(self, project: Project) -> str:
        """Return what is missing, in words."""
        found = project.account(self.name)
        if found is None:
            return "does not exist"
        return "is disabled" if found.get("disabled") else ""

    def meet(self, project: Project) -> None:
        """Create it; one that somebody disabled stays so."""
        if project.account(self.name) is None:
            project.create_account(self.name, self.display_name)


@dataclass(frozen=True)
class RoleNeed:
    """A role of a service account on the project, a bucket, or another account."""

    project_id: str
    on: PolicyOf
    resource: str
    role: str
    account: str
    kind: str = "role"

    @property
    def name(self) -> str:
        """Which role, whose, and on what."""
        on = {"project": "the project", "bucket": f"gs://{self.resource}", "account": self.resource}[self.on]
        return f"{self.role} on {on} for {self.account}"

    @property
    def command(self) -> str:
        """The gcloud command that grants it."""
        commands: dict[PolicyOf, tuple[str, ...]] = {
            "project": ("projects", "add-iam-policy-binding", self.resource, "--condition", "None"),
            "bucket": ("storage", "buckets", "add-iam-policy-binding", f"gs://{self.resource}"),
            "account": (
                "iam",
                "service-accounts",
                "add-iam-policy-binding",
                self.resource,
                "--project",
                self.project_id,
            ),
        }
        return _gcloud(*commands[self.on], "--member", self._member, "--role", self.role)

    @property
    def _member(self) -> str:
        return f"serviceAccount:{self.account}"

    def lacks(self, project: Project) -> str:
        """Return what is missing, in words."""
        return "" if project.holds(self.on, self.resource, self.role, self._member) else "not granted"

    def meet(self, project: Project) -> None:
        """Grant it."""
        project.grant(self.on, self.resource, self.role, self._member)


def project_needs(settings: Settings, airflow_account: str | None = None) -> list[Need]:
    """Return all that the environment's project needs, in the order in which it can be created.

    :param airflow_account: service account that Airflow works as; when None the last of `impersonation_chain`, else
        the account that jobs run as.
    """
    project, work, models = settings.project, settings.buckets.work, settings.buckets.models
    jobs = settings.service_account or vertex_agent(settings)
    airflow = airflow_account or impersonated(settings) or settings.service_account
    needs: list[Need] = [ServiceNeed(project, name) for name in SERVICES]
    needs += [
        BucketNeed(project, work, settings.region, [_ABORT_UPLOADS, _DELETE_CHECKPOINTS]),
        BucketNeed(project, models, settings.region, [_ABORT_UPLOADS]),
    ]
    if settings.service_account:
        needs.append(AccountNeed(project, settings.service_account, "Training jobs of Trainops"))
    if airflow and airflow not in {settings.service_account, airflow_account}:
        needs.append(AccountNeed(project, airflow, "Airflow of Trainops"))
    needs += [RoleNeed(project, "project", project, "roles/logging.logWriter", jobs)]
    needs += [RoleNeed(project, "bucket", name, "roles/storage.objectUser", jobs) for name in (work, models)]
    return needs + _airflow_roles(settings, airflow, jobs) if airflow else needs


def vertex_agent(settings: Settings) -> str:
    """Return the account of Vertex AI that jobs run as when the environment names none."""
    return f"service-{settings.project_number}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com"


def impersonated(settings: Settings) -> str | None:
    """Return the account that `impersonation_chain` leads to."""
    chain = settings.impersonation_chain
    if isinstance(chain, list):
        return chain[-1] if chain else None
    return chain


def _airflow_roles(settings: Settings, airflow: str, jobs: str) -> list[Need]:
    project = settings.project
    buckets = [settings.buckets.work, settings.buckets.models] if airflow != jobs else []
    roles: list[Need] = [
        RoleNeed(project, "project", project, role, airflow)
        for role in ("roles/aiplatform.user", "roles/logging.viewer")
    ]
    roles += [RoleNeed(project, "bucket", name, "roles/storage.objectUser", airflow) for name in buckets]
    if settings.service_account:
        # actAs: whoever creates a job that runs as an account must be allowed to.
        on = settings.service_account
        roles.append(RoleNeed(project, "account", on, "roles/iam.serviceAccountUser", airflow))
    return roles


def _rule_text(rule: dict[str, Any]) -> str:
    age = rule["condition"]["age"]
    if rule["action"]["type"] == "Delete":
        return f"deletes checkpoints (runs/*.pt) after {age} days"
    return f"ends unfinished uploads after {age} days"


def _is_uniform(bucket: dict[str, Any]) -> bool:
    access = bucket.get("iamConfiguration", {}).get("uniformBucketLevelAccess", {})
    return bool(access.get("enabled"))


def _gcloud(*words: str) -> str:
    return shlex.join(["gcloud", *words])
