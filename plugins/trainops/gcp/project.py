"""A Google Cloud project, as far as Trainops sets one up: services, buckets, accounts and who may do what."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from trainops.errors import NotFoundError, RequestRefused, TransientError, WriteConflict
from trainops.gcp.session import Json, Session

if TYPE_CHECKING:
    from trainops.settings import Settings

OPERATION_SECONDS = 300
"""How long the enabling of a service may take."""

PAUSE_SECONDS = 2.0
"""Between two looks at something that takes its time."""

POLICY_TRIES = 8
"""How often a policy is read and written again after somebody else's write."""

USER_ACCOUNTS = ".iam.gserviceaccount.com"
"""End of the address of every service account that people create; the project's id stands before it."""

PolicyOf = Literal["project", "bucket", "account"]


@dataclass(frozen=True)
class Addresses:
    """Where the services answer."""

    services: str = "https://serviceusage.googleapis.com"
    storage: str = "https://storage.googleapis.com"
    iam: str = "https://iam.googleapis.com"
    projects: str = "https://cloudresourcemanager.googleapis.com"


class Project:
    """One project; every method raises the ServiceError family."""

    def __init__(self, session: Session, project: str, addresses: Addresses | None = None) -> None:
        self._session = session
        self._project = project
        self._at = addresses or Addresses()

    @classmethod
    def connect(cls, settings: Settings, credentials: Any = None, addresses: Addresses | None = None) -> Project:
        """Return a client for the environment's project.

        :param addresses: other addresses than Google's.
        :raises AccessError: no credentials were found.
        """
        return cls(Session.connect(settings, credentials), settings.project, addresses)

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def service_enabled(self, service: str) -> bool:
        """Return whether an API such as `aiplatform.googleapis.com` is enabled."""
        return self._session.call("GET", self._service(service)).get("state") == "ENABLED"

    def enable_service(self, service: str) -> None:
        """Enable an API, and wait until it is."""
        operation = self._session.call("POST", f"{self._service(service)}:enable", body={})
        deadline = time.monotonic() + OPERATION_SECONDS
        while not operation.get("done"):
            if time.monotonic() > deadline:
                raise TransientError(f"{service} is still not enabled after {OPERATION_SECONDS} s")
            time.sleep(PAUSE_SECONDS)
            operation = self._session.call("GET", f"{self._at.services}/v1/{operation['name']}")
        if "error" in operation:
            raise RequestRefused(f"{service} cannot be enabled: {operation['error'].get('message')}")

    def bucket(self, name: str) -> Json | None:
        """Return a bucket, or None where there is none."""
        return self._found(f"{self._at.storage}/storage/v1/b/{name}")

    def create_bucket(self, bucket: Json) -> None:
        """Create a bucket."""
        url = f"{self._at.storage}/storage/v1/b"
        self._session.call("POST", url, params={"project": self._project}, body=bucket)

    def change_bucket(self, name: str, changes: Json) -> None:
        """Change what `changes` names of a bucket, and nothing else."""
        self._session.call("PATCH", f"{self._at.storage}/storage/v1/b/{name}", body=changes)

    def account(self, email: str) -> Json | None:
        """Return a service account, or None where there is none."""
        return self._found(self._resource("account", email))

    def create_account(self, email: str, display_name: str) -> None:
        """Create the service account whose address will be `email`, in the project that the address names."""
        body = {"accountId": email.partition("@")[0], "serviceAccount": {"displayName": display_name}}
        self._session.call("POST", self._resource("account", email).rpartition("/")[0], body=body)

    def holds(self, kind: PolicyOf, name: str, role: str, member: str) -> bool:
        """Return whether `member` has `role`, without a condition, on a project, bucket or service account."""
        try:
            return _binds(self._policy(kind, name), role, member)
        except NotFoundError:
            return False

    def grant(self, kind: PolicyOf, name: str, role: str, member: str) -> None:
        """Give `member` a role, and leave everything else in the policy as it is.

        The policy is written against the etag that was read; when somebody else wrote meanwhile it is read again. A new
        account is not known everywhere at once, so its refusal is asked again too.
        """
        for tries_left in reversed(range(POLICY_TRIES)):
            policy = self._policy(kind, name)
            if _binds(policy, role, member):
                return
            bindings = [*policy.get("bindings", []), {"role": role, "members": [member]}]
            try:
                self._set_policy(kind, name, {**policy, "bindings": bindings, "version": 3})
            except (RequestRefused, WriteConflict) as error:
                again = error.status in {409, 412} or "does not exist" in str(error)
                if not again or not tries_left:
                    raise
                time.sleep(PAUSE_SECONDS)
            else:
                return

    def _service(self, service: str) -> str:
        return f"{self._at.services}/v1/projects/{self._project}/services/{service}"

    def _found(self, url: str) -> Json | None:
        try:
            return self._session.call("GET", url)
        except NotFoundError:
            return None

    def _policy(self, kind: PolicyOf, name: str) -> Json:
        # Version 3: an older one would hide conditions, and writing it back would lose them.
        url = self._resource(kind, name)
        if kind == "bucket":
            return self._session.call("GET", url, params={"optionsRequestedPolicyVersion": 3})
        if kind == "account":
            return self._session.call("POST", f"{url}:getIamPolicy", params={"options.requestedPolicyVersion": 3})
        return self._session.call("POST", f"{url}:getIamPolicy", body={"options": {"requestedPolicyVersion": 3}})

    def _set_policy(self, kind: PolicyOf, name: str, policy: Json) -> None:
        if kind == "bucket":
            self._session.call("PUT", self._resource(kind, name), body=policy)
            return
        self._session.call("POST", f"{self._resource(kind, name)}:setIamPolicy", body={"policy": policy})

    def _resource(self, kind: PolicyOf, name: str) -> str:
        if kind == "bucket":
            return f"{self._at.storage}/storage/v1/b/{name}/iam"
        if kind == "account":
            # Not projects/-: there Google answers 403 for an account that does not exist.
            return f"{self._at.iam}/v1/projects/{self._project_of(name)}/serviceAccounts/{name}"
        return f"{self._at.projects}/v1/projects/{name}"

    def _project_of(self, email: str) -> str:
        host = email.partition("@")[2]
        return host.removesuffix(USER_ACCOUNTS) if host.endswith(USER_ACCOUNTS) else self._project


def _binds(policy: Json, role: str, member: str) -> bool:
    return any(
        binding.get("role") == role and member in binding.get("members", []) and "condition" not in binding
        for binding in policy.get("bindings", [])
    )
