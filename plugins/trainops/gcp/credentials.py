"""Who Trainops is when it speaks to Google."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainops.gcp.faults import service_errors

if TYPE_CHECKING:
    from trainops.settings import Settings

SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]


def credentials_for(settings: Settings, given: Any = None) -> Any:
    """Return the credentials to use: none of Google's on a laptop, else those given, else the application default.

    Given credentials (the Airflow connection's) are taken as they are; the application default ones act as the
    last account of `impersonation_chain` where one is set.

    :raises AccessError: there are no application default credentials.
    """
    if settings.credentials == "anonymous":
        from google.auth.credentials import AnonymousCredentials

        return AnonymousCredentials()  # type: ignore[no-untyped-call]
    if given is not None:
        return given
    return _application_default(settings)


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
        source_credentials=source, target_principal=accounts[-1], delegates=accounts[:-1], target_scopes=SCOPES
    )
