"""From an Airflow connection to the Google services of an environment."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Generator, Hashable, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from trainops.errors import ConfigError
from trainops.settings import Settings, config_file, environment_name, load_settings
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
        self.settings = _settings(environment)
        self.gcp_conn_id = gcp_conn_id or self.settings.connection
        self.impersonation_chain = impersonation_chain or self.settings.impersonation_chain

    def services(self) -> Services:
        """The services; nothing is asked of Google before they are used."""
        return Services(self.settings, self.credentials())

    def credentials(self) -> Any:
        """The connection's credentials; None where the environment takes none.

        :raises ConfigError: there is no such connection, or nothing can be made of what it holds.
        """
        if self.settings.credentials == "anonymous":
            return None
        with self._told_of_connection():
            return self._google_hook().get_credentials()

    @property
    def fingerprint(self) -> Hashable:
        """Equal for hooks whose services are the same: environment, connection with what it holds now, and chain."""
        held = None
        if self.settings.credentials != "anonymous":
            with self._told_of_connection():
                held = self._google_hook().extras
        text = json.dumps([self.settings.model_dump_json(), self.gcp_conn_id, self.impersonation_chain, held])
        return hashlib.sha256(text.encode()).hexdigest()  # a key of a service account is not kept as a key of a dict

    def _google_hook(self) -> Any:
        from airflow.providers.google.common.hooks.base_google import GoogleBaseHook  # seconds of CPU: not at the top

        return GoogleBaseHook(gcp_conn_id=self.gcp_conn_id, impersonation_chain=self.impersonation_chain)

    @contextmanager
    def _told_of_connection(self) -> Generator[None]:
        from airflow.sdk.exceptions import AirflowException, AirflowNotFoundException
        from google.auth.exceptions import GoogleAuthError

        try:
            yield
        except AirflowNotFoundException as error:
            raise self._refused(
                "there is no such Airflow connection", "add it: Admin, Connections, Google Cloud"
            ) from error
        except (AirflowException, GoogleAuthError, OSError) as error:
            problem = f"the Airflow connection holds no credentials that can be used: {error}"
            raise self._refused(problem, "correct the connection: Admin, Connections") from error

    def _refused(self, problem: str, next_step: str) -> ConfigError:
        return ConfigError(
            problem, source=f"environment {self.settings.name}", key="connection", value=self.gcp_conn_id,
            next_step=next_step,
        )  # fmt: skip


def _settings(environment: str | None) -> Settings:
    """The settings of an environment, parsed anew only when its file has changed: a triggerer asks a thousand times."""
    source = "" if environment else "TRAINOPS_ENVIRONMENT"
    path = config_file("environments", environment_name(environment), source=source)
    kept = path.stat()
    return _parsed(environment, path, kept.st_mtime_ns, kept.st_size)


@lru_cache(maxsize=16)
def _parsed(environment: str | None, _path: Path, _modified: int, _size: int) -> Settings:
    return load_settings(environment)


_SHARED: dict[Hashable, Services] = {}
_SHARING = threading.Lock()


def shared_services(
    environment: str | None, gcp_conn_id: str | None, impersonation_chain: ImpersonationChain
) -> Services:
    """The services of an environment with these credentials, one object for the whole process.

    A triggerer follows a thousand runs; with connections of its own for each it would hold thousands. A connection that
    was given a new key is another one, so the triggerer need not be started again for it.
    """
    hook = TrainopsHook(environment, gcp_conn_id, impersonation_chain)
    key = hook.fingerprint
    with _SHARING:
        if key not in _SHARED:
            _SHARED[key] = hook.services()
        return _SHARED[key]
