"""Airflow's configuration on a laptop, as environment variables: they win over the airflow.cfg that Airflow writes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from localcloud.errors import UsageError
from localcloud.files import read_json, write_json
from localcloud.home import Home
from localcloud.ports import HOST
from localcloud.postgres import connection_uri
from localcloud.secrets_file import Secrets

USER = "admin"


def airflow_environment(
    home: Home, secrets: Secrets, *, port: int, postgres_port: int, storage_url: str
) -> dict[str, str]:
    """Build the environment of all components, and of the `airflow` command line."""
    url = f"http://{HOST}:{port}"
    sections: dict[str, dict[str, object]] = {
        "core": _core(home, secrets, url),
        "api": {"host": HOST, "port": port, "base_url": url, "secret_key": secrets.api_secret, "workers": 1},
        "api_auth": {"jwt_secret": secrets.jwt_secret},
        "database": {"sql_alchemy_conn": connection_uri(postgres_port, secrets.postgres_password)},
        "logging": {"base_log_folder": home.airflow / "logs", "colored_console_log": False},
        "dag_processor": {
            "refresh_interval": 10,
            "min_file_process_interval": _reread_seconds(),
            "parsing_processes": 1,
        },
        "scheduler": _scheduler(),
        "triggerer": {"job_heartbeat_sec": 2, "triggerer_health_check_threshold": 15, "capacity": 200},
        # A trigger that fires sooner than a heartbeat after the deferral would confuse the scheduler.
        "workers": {"min_heartbeat_interval": 1, "execution_api_timeout": 20, "execution_api_retries": 8},
    }
    settings = {
        f"AIRFLOW__{section}__{key}".upper(): str(value)
        for section, values in sections.items()
        for key, value in values.items()
    }
    return {"AIRFLOW_HOME": str(home.airflow)} | settings | _google(storage_url) | _trainops() | _interpreter()


def write_password_file(home: Home, secrets: Secrets) -> None:
    """Give the one user of SimpleAuthManager its password."""
    write_json(_password_file(home), {USER: secrets.airflow_password})


def airflow_settings(home: Home) -> dict[str, str]:
    """Read Airflow's environment as the components have it; raises UsageError when the local cloud is not up."""
    settings = read_json(home.environment_file)
    if not isinstance(settings, dict):
        raise UsageError("the local cloud is not up; run `make up` (`python -m localcloud up`) first")
    return settings


def _core(home: Home, secrets: Secrets, url: str) -> dict[str, object]:
    return {
        "executor": "LocalExecutor",
        "parallelism": 6,  # LocalExecutor forks that many idle workers
        "dags_folder": home.dags,
        "plugins_folder": home.root / "plugins",
        "load_examples": False,
        "fernet_key": secrets.fernet_key,
        "execution_api_server_url": f"{url}/execution/",
        "simple_auth_manager_users": f"{USER}:admin",
        "simple_auth_manager_passwords_file": _password_file(home),
        "test_connection": "Disabled",
        "hostname_callable": "socket.gethostname",  # the default asks DNS, which hangs on some laptops
        "min_serialized_dag_update_interval": 5,
    }


def _reread_seconds() -> int:
    """After how many seconds a DAG file that has not changed is read again: a new experiment's file is a DAG then.

    Reading more often takes the cores from training. A changed DAG file is read within ten seconds in any case.
    """
    given = os.environ.get("LOCALCLOUD_REREAD_SECONDS", "30")
    if not given.isdecimal():
        raise UsageError(f"LOCALCLOUD_REREAD_SECONDS: got {given!r}; a number of seconds is expected, such as 30")
    return int(given)


def _scheduler() -> dict[str, object]:
    """Short enough that a killed scheduler's or worker's tasks run again within a minute.

    Two cores that train eight jobs keep a scheduler from its heartbeat for 17 s: it must not be taken for dead, since
    its tasks would be killed and lose a retry each.
    """
    return {
        "job_heartbeat_sec": 2,
        "scheduler_heartbeat_sec": 2,
        "scheduler_health_check_threshold": 40,
        "orphaned_tasks_check_interval": 10,
        "task_instance_heartbeat_timeout": 30,
        "task_instance_heartbeat_timeout_detection_interval": 5,
        "enable_health_check": False,  # it would listen on all interfaces
    }


def _google(storage_url: str) -> dict[str, str]:
    connection = {"conn_type": "google_cloud_platform", "extra": {"is_anonymous": True, "project": "local-llm"}}
    return {
        "AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT": json.dumps(connection),
        "STORAGE_EMULATOR_HOST": storage_url,
        "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",  # gcsfs hangs before an emulator otherwise
    }


def _trainops() -> dict[str, str]:
    """The product's own settings: a person's folders of configs and of the trainer are passed on."""
    folders = ("TRAINOPS_CONFIGS", "TRAINOPS_TRAINER")
    return {"TRAINOPS_ENVIRONMENT": "local"} | {name: os.environ[name] for name in folders if os.environ.get(name)}


def _interpreter() -> dict[str, str]:
    """Put this interpreter's programs first on PATH, and keep proxies of the machine away from loopback."""
    programs = str(Path(sys.executable).parent)
    rest = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder != programs]
    loopback = f"{HOST},localhost"
    return {"PATH": os.pathsep.join([programs, *rest]), "NO_PROXY": loopback, "no_proxy": loopback}


def _password_file(home: Home) -> Path:
    return home.airflow / "simple_auth_manager_passwords.json"
