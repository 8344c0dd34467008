"""From an Airflow connection to the Google services of an environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainops.settings import load_settings
from trainops.steps.services import Services

ImpersonationChain = str | Sequence[str] | None


class TrainopsHook:
    """Services of an environment, with the credentials of an Airflow connection.

    :param environment: name of a file in `configs/environments`; None for what `TRAINOPS_ENVIRONMENT` says.
    :param gcp_conn_id: the connection; None for the environment's.
    :param impersonation_chain: service accounts to act as; None for the environment's.
    """

    def __init__(
        self,
        environment: str | None = None,
        gcp_conn_id: str | None = None,
        impersonation_chain: ImpersonationChain = None,
    ) -> None:
        self.settings = load_settings(environment)
        self.gcp_conn_id = gcp_conn_id or self.settings.connection
        self.impersonation_chain = impersonation_chain or self.settings.impersonation_chain

    def services(self) -> Services:
        """The services; nothing is asked of Google before they are used."""
        return Services(self.settings, self.credentials())

    def credentials(self) -> Any:
        """The connection's credentials; None where the environment takes none."""
        if self.settings.credentials == "anonymous":
            return None
        from airflow.providers.google.common.hooks.base_google import GoogleBaseHook  # seconds of CPU: not at the top

        hook = GoogleBaseHook(gcp_conn_id=self.gcp_conn_id, impersonation_chain=self.impersonation_chain)
        return hook.get_credentials()
