"""Who Trainops is when it speaks to Google."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainops.errors import ConfigError
from trainops.gcp.faults import service_errors

if TYPE_CHECKING:
    from trainops.settings import Settings

SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]


def credentials_for(settings: Settings, given: Any = None) -> Any:
    """Return the credentials to use: none of Google's on a laptop, else those given, else the application default.

    Given credentials (the Airflow connection's) keep the account that they act as; the application default ones act as
    the last account of `impersonation_chain` where one is set. Both count against `quota_project` where that is set.

    :raises AccessError: there are no application default credentials.
    :raises ConfigError: they cannot count against `quota_project`.
    """
    if settings.credentials == "anonymous":
        from google.auth.credentials import AnonymousCredentials

        return AnonymousCredentials()  # type: ignore[no-untyped-call]
    found = _application_default(settings) if given is None else given
    if settings.quota_project is None or found.quota_project_id == settings.quota_project:
        return found
    if not hasattr(found, "with_quota_project"):
        raise ConfigError(
            f"credentials of the type {type(found).__name__} count against no other project",
            source=f"environment {settings.name}", key="quota_project", value=settings.quota_project,
            next_step="set it to null, or use other credentials",
        )  # fmt: skip
    return found.with_quota_project(settings.quota_project)


def _application_default(settings: Settings) -> Any:
    import google.auth

    with service_errors("looking for credentials"):
        source, _ = google.auth.default(scopes=SCOPES)
    chain = settings.impersonation_chain
    if not chain:
        return source
    from google.auth import impersonated_credentials

    accounts = [chain] if isinstance(chain, str) else list(chain)
    return impersonated_credentials.Credentials(  # type: ignore[no-untyped-call]
        source_credentials=source, target_principal=accounts[-1], delegates=accounts[:-1], target_scopes=SCOPES,
        quota_project_id=getattr(source, "quota_project_id", None),
    )  # fmt: skip
