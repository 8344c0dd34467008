"""From an Airflow connection to the Google services of an environment."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
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


_SHARED: dict[Hashable, Services] = {}
_SHARING = threading.Lock()


def shared_services(
    environment: str | None, gcp_conn_id: str | None, impersonation_chain: ImpersonationChain
) -> Services:
    """The services of an environment with these credentials, one object for the whole process.

    A triggerer follows a thousand runs; with connections of its own for each it would hold thousands.
    """
    hook = TrainopsHook(environment, gcp_conn_id, impersonation_chain)
    key = hook.settings.model_dump_json(), hook.gcp_conn_id, str(hook.impersonation_chain)
    with _SHARING:
        if key not in _SHARED:
            _SHARED[key] = hook.services()
        return _SHARED[key]
