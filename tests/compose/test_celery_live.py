"""The services of docker-compose.yaml, started natively with its own commands and environment, train a model.

What a Docker engine would give is put in its place: a folder for /opt/airflow with the mounted folders copied in,
PostgreSQL and Redis on free ports of loopback, and 127.0.0.2 for the network between the containers.
"""

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
import yaml
from tests.ports import free_pair

from localcloud import postgres

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(
        shutil.which("redis-server") is None, reason="redis-server is not on PATH (package redis-server)"
    ),
]

DAG = "train_stdlib_tiny"
MOUNTED = ["dags", "plugins", "include", "trainer", "docker"]
NETWORK = "127.0.0.2"
COMPONENTS = ["airflow-scheduler", "airflow-dag-processor", "airflow-worker", "airflow-triggerer"]


class Stack:
    """The services of the file, as processes of this machine."""

    def __init__(self, services: dict[str, Any], base: Path, root: Path, variables: Mapping[str, str]) -> None:
        self.services, self.base, self.root, self.variables = services, base, root, variables
        self.home = base / "airflow"
        self.ports = {name: free_pair() for name in ("postgres", "redis", "api", "health", "vertex", "storage")}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def environment(self, service: str) -> dict[str, str]:
        """What the file says, with host names, ports and paths of this machine."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "TRAINOPS"))}
        stated = {name: self.here(str(value)) for name, value in self.services[service].get("environment", {}).items()}
        added = {
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self.ports["api"]),
            "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_SERVER_PORT": str(self.ports["health"]),
            "C_FORCE_ROOT": "1",
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PYTHONPATH": str(self.home / "plugins"),  # before the copy that the environment was installed with
        }
        return kept | added | stated

    def here(self, text: str) -> str:
        """Replace what only exists between containers."""
        replacements = {
            "@postgres:5432": f"@127.0.0.1:{self.ports['postgres']}",
            "@redis:6379": f"@127.0.0.1:{self.ports['redis']}",
            "airflow-apiserver:8080": f"127.0.0.1:{self.ports['api']}",
            "localhost:8080": f"127.0.0.1:{self.ports['api']}",
            "localhost:8974": f"127.0.0.1:{self.ports['health']}",
            "localhost:8801": f"127.0.0.1:{self.ports['vertex']}",
            "/opt/airflow": str(self.home),
            "/home/airflow/trainer/bin/python": str(self.root / ".venv-trainer/bin/python"),
        }
        for there, here in replacements.items():
            text = text.replace(there, here)
        return text

    def command(self, service: str) -> list[str]:
        """Give the command of a service; as the image's entry point does, a bare subcommand is Airflow's."""
        words = [self.here(word) for word in self.services[service]["command"]]
        return words if words[0] in {"bash", "python", "sh"} else ["airflow", *words]

    def start(self, name: str, command: list[str], environment: Mapping[str, str] | None = None) -> None:
        """Start a process in a session of its own; its output goes to a log."""
        with (self.base / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                command,
                env=environment,
                cwd=self.base,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def run(self, *command: str, service: str = "airflow-scheduler") -> subprocess.CompletedProcess[str]:
        """Run a command to its end in the environment of one of Airflow's services."""
        environment = self.environment(service)
        return subprocess.run(command, env=environment, cwd=self.base, capture_output=True, text=True, check=False)

    def succeeds(self, *command: str) -> bool:
        """Say whether a command ends with 0."""
        return self.run(*command).returncode == 0

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Ask Airflow's metadata."""
        uri = postgres.connection_uri(self.ports["postgres"], self.variables["POSTGRES_PASSWORD"], driver="postgresql")
        with psycopg.connect(uri.rpartition("/")[0] + "/airflow", autocommit=True) as connection:
            return connection.execute(sql, values).fetchall()

    def wait(self, what: str, is_so: Callable[[], bool], seconds: float) -> None:
        """Wait for something, as long as all services live."""
        deadline = time.monotonic() + seconds
        while not is_so():
            dead = [name for name, process in self.processes.items() if process.poll() is not None]
            assert not dead, f"ended by themselves: {dead}\n{self.tail(*dead)}"
            assert time.monotonic() < deadline, f"{what}: not within {seconds:.0f} s\n{self.tail(*self.processes)}"
            time.sleep(2)

    def tail(self, *names: str) -> str:
        """Give the last lines of logs."""
        logs = {name: (self.base / f"{name}.log").read_text(errors="replace").splitlines()[-15:] for name in names}
        return "\n".join(f"--- {name}\n" + "\n".join(lines) for name, lines in logs.items())

    def stop(self) -> None:
        """End all processes, with whatever they started, the last one first."""
        for process in reversed(self.processes.values()):
            family: list[psutil.Process] = []
            with contextlib.suppress(psutil.NoSuchProcess):
                started = psutil.Process(process.pid)
                family = [started, *started.children(recursive=True)]
            for one in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.terminate()
            _, alive = psutil.wait_procs(family, timeout=15)
            for one in alive:
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.kill()
            process.wait(timeout=15)


def answers(url: str) -> bool:
    """Say whether an address answers with success."""
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as reply:
        return bool(reply.status == 200)
    return False


@pytest.fixture(scope="module")
def stack(
    compose: dict[str, Any], interpolate: Any, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """All services up: databases, the database's migration, stand-ins, Airflow."""
    names = ["POSTGRES_PASSWORD", "REDIS_PASSWORD", "API_SECRET_KEY", "JWT_SECRET", "AIRFLOW_PASSWORD"]
    # A Fernet key is 32 bytes in URL-safe base64 with its padding.
    variables = {name: secrets.token_urlsafe(32) for name in names} | {"FERNET_KEY": secrets.token_urlsafe(32) + "="}
    stack = Stack(interpolate(compose["services"], variables), tmp_path_factory.mktemp("compose"), root, variables)
    for folder in MOUNTED:
        shutil.copytree(root / folder, stack.home / folder, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    unschedule(stack.home / "include/configs/experiments" / f"{DAG.removeprefix('train_')}.yaml")
    for folder in ["login", "logs"]:
        (stack.home / folder).mkdir()
    try:
        start_databases(stack)
        start_stand_ins(stack)
        start_airflow(stack)
        yield stack
    finally:
        stack.stop()


def unschedule(file: Path) -> None:
    """Take the schedule out of the copied experiment, else the night's run shares the machine with the test's."""
    experiment = yaml.safe_load(file.read_text()) | {"schedule": None}
    file.write_text(yaml.safe_dump(experiment))


def start_databases(stack: Stack) -> None:
    """PostgreSQL from a wheel, Redis from the system, both with the file's passwords; then `airflow-init`."""
    data, port = stack.base / "postgres", stack.ports["postgres"]
    for folder in [stack.base, *stack.base.parents[:2]]:
        folder.chmod(folder.stat().st_mode | 0o711)  # PostgreSQL may run as another user, who has to walk there
    postgres.ensure_cluster(data, stack.variables["POSTGRES_PASSWORD"])
    stack.start("postgres", postgres.server_command(data, port))
    redis = " ".join(stack.services["redis"]["command"][2:]).replace(
        "redis-server -", f"redis-server - --bind 127.0.0.1 --port {stack.ports['redis']}"
    )
    stack.start("redis", ["sh", "-c", redis], stack.environment("redis"))
    stack.wait("PostgreSQL is up", lambda: postgres.is_ready(port), 60)
    uri = postgres.connection_uri(port, stack.variables["POSTGRES_PASSWORD"], driver="postgresql")
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute("CREATE DATABASE airflow")
    done = stack.run(*stack.command("airflow-init"), service="airflow-init")
    assert done.returncode == 0, done.stdout + done.stderr


def start_stand_ins(stack: Stack) -> None:
    """The service `localcloud`, reached from 127.0.0.2 as other containers would reach it."""
    vertex, storage = stack.ports["vertex"], stack.ports["storage"]
    command = [NETWORK if word == "localcloud" else word for word in stack.command("localcloud")]
    command += ["--listen", NETWORK, "--vertex-port", str(vertex), "--storage-port", str(storage)]
    stack.start("localcloud", command, stack.environment("localcloud"))
    stack.wait("the stand-ins answer", lambda: answers(f"http://{NETWORK}:{vertex}/healthz"), 60)
    stack.wait("storage answers", lambda: answers(f"http://{NETWORK}:{storage}/storage/v1/b"), 60)


def start_airflow(stack: Stack) -> None:
    """Airflow's services, the API server first, and the health checks of the file that are web addresses."""
    for name in ["airflow-apiserver", *COMPONENTS]:
        stack.start(name, stack.command(name), stack.environment(name))
        if name in {"airflow-apiserver", "airflow-scheduler"}:
            url = stack.here(stack.services[name]["healthcheck"]["test"][-1])
            stack.wait(f"{name} answers {url}", partial(answers, url), 120)


def test_a_celery_worker_runs_the_demo_to_a_green_end(stack: Stack) -> None:
    stack.wait(
        "the DAG is known", lambda: bool(stack.query("SELECT 1 FROM serialized_dag WHERE dag_id = %s", DAG)), 120
    )
    trigger = ["airflow", "dags", "trigger", DAG, "--run-id", "celery", "--conf", json.dumps({"steps": 20})]
    for command in [["airflow", "dags", "unpause", "--yes", DAG], trigger]:
        done = stack.run(*command)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"

    def state() -> str:
        return str(stack.query("SELECT state FROM dag_run WHERE dag_id = %s AND run_id = 'celery'", DAG)[0][0])

    stack.wait("the run ends", lambda: state() in {"success", "failed"}, 900)
    tasks = stack.query("SELECT task_id, state FROM task_instance WHERE dag_id = %s AND run_id = 'celery'", DAG)
    assert state() == "success", f"{tasks}\n{stack.tail('airflow-worker', 'airflow-scheduler')}"
    assert dict(tasks)["wait_for_training"] == "success"
    ran = stack.query("SELECT count(*) FROM celery_taskmeta WHERE status = 'SUCCESS'")[0][0]
    assert ran >= 5, "the tasks did not go through Celery"


def test_every_health_check_that_asks_airflow_is_green(stack: Stack) -> None:
    for name in COMPONENTS[1:]:
        check = stack.here(stack.services[name]["healthcheck"]["test"][1])
        # In a container HOSTNAME is the one name that all use; this machine may give Airflow and Celery different ones.
        own = socket.gethostname() if "celery@" in check else stack.query("SELECT hostname FROM job LIMIT 1")[0][0]
        command = ["bash", "-c", check.replace("${HOSTNAME}", own)]
        stack.wait(f"green: {check}", partial(stack.succeeds, *command), 120)


def test_nothing_listens_but_on_loopback(stack: Stack) -> None:
    family = [psutil.Process(process.pid) for process in stack.processes.values()]
    family += [child for process in family for child in process.children(recursive=True)]
    listening = {
        (connection.laddr.ip, process.name())
        for process in family
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert {ip for ip, _ in listening} >= {"127.0.0.1", NETWORK}
    assert {found for found in listening if not found[0].startswith("127.")} == set()
