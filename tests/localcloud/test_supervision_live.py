"""The whole local cloud in a folder of its own: brought up, killed piece by piece, brought down."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from localcloud.airflow_api import AirflowApi
from localcloud.home import Home
from localcloud.leftovers import find_leftovers
from localcloud.state import CloudState, ComponentState

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

PROJECT = Path(__file__).parents[2]
AIRFLOW = ("api-server", "scheduler", "dag-processor", "triggerer")
LITTLE_DAG = """
import time
from datetime import datetime, timedelta
from airflow.sdk import dag, task

@dag(schedule=None)
def little():
    @task(retries=2, retry_delay=timedelta(seconds=1))
    def wait(dag_run=None):
        for second in range(dag_run.conf.get("seconds", 0)):
            print("second", second)
            time.sleep(1)
        if dag_run.conf.get("fail"):
            raise ValueError("told to fail")
    wait()

little()
"""


@dataclass
class Cloud:
    """One local cloud under test."""

    home: Home
    up_output: str

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the local cloud as a person does."""
        return _localcloud(self.home.root, *arguments)

    def state(self) -> CloudState:
        """What the supervisor tells now."""
        state = CloudState.load(self.home.state_file)
        assert state is not None
        return state

    def component(self, name: str) -> ComponentState:
        """One component, as of now."""
        return next(one for one in self.state().components if one.name == name)

    def endpoints(self) -> dict[str, Any]:
        """The endpoints file."""
        value: dict[str, Any] = json.loads(self.home.endpoints_file.read_text())
        return value

    def kill(self, *names: str) -> None:
        """Kill components and wait until everything is healthy again."""
        killed = {name: self.component(name).process for name in names}
        for identity in killed.values():
            assert identity is not None
            os.kill(identity.pid, 9)
        _wait(lambda: all(self.component(name).process != killed[name] for name in names), 10, self.state)
        _wait(lambda: all(one.status in {"healthy", "done"} for one in self.state().components), 180, self.state)


def _localcloud(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "PYTHONPATH": str(PROJECT / "include"),
        "LOCALCLOUD_TRAINER_PYTHON": str(PROJECT / ".venv-trainer" / "bin" / "python"),
    }
    return subprocess.run(
        [sys.executable, "-m", "localcloud", "--root", str(root), *arguments],
        env=environment, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip


def _wait(done: Callable[[], bool], seconds: float, tell: Callable[[], object]) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, tell()
        time.sleep(0.2)


def _listening(process: psutil.Process) -> list[tuple[str, int]]:
    try:
        connections = process.net_connections()
    except psutil.NoSuchProcess:  # Airflow's short-lived children come and go
        return []
    return [(one.laddr.ip, one.laddr.port) for one in connections if one.status == psutil.CONN_LISTEN]


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    root = tmp_path_factory.mktemp("clone")
    (root / "dags").mkdir()
    (root / "plugins").mkdir()
    (root / "dags" / "little.py").write_text(LITTLE_DAG)
    answer = _localcloud(root, "up")
    try:
        assert answer.returncode == 0, answer.stdout + answer.stderr
        yield Cloud(Home.locate(str(root)), answer.stdout)
    finally:
        _localcloud(root, "down")


@pytest.fixture
def api(cloud: Cloud) -> Iterator[AirflowApi]:
    endpoints = cloud.endpoints()
    api = AirflowApi(endpoints["airflow"], endpoints["airflow_user"], endpoints["airflow_password"])
    yield api
    api.close()


def test_up_prints_addresses_and_login_and_publishes_them_to_the_owner_alone(cloud: Cloud) -> None:
    endpoints = cloud.endpoints()
    assert set(endpoints) == {"vertex", "storage", "logging", "airflow", "airflow_user", "airflow_password", "pid"}
    assert endpoints["airflow"] in cloud.up_output
    assert f"{endpoints['airflow_user']} / {endpoints['airflow_password']}" in cloud.up_output
    assert cloud.home.endpoints_file.stat().st_mode & 0o777 == 0o600


def test_a_second_up_finds_everything_running(cloud: Cloud) -> None:
    before = cloud.state().supervisor
    assert cloud.run("up").returncode == 0
    assert cloud.state().supervisor == before


def test_both_buckets_exist(cloud: Cloud) -> None:
    answer = httpx.get(f"{cloud.endpoints()['storage']}/storage/v1/b").json()
    assert {item["name"] for item in answer["items"]} == {"local-llm-work", "local-llm-models"}


def test_nothing_listens_on_any_interface_but_loopback(cloud: Cloud) -> None:
    processes = [psutil.Process(cloud.state().supervisor.pid), *find_leftovers(cloud.home)]
    listening = [address for process in processes for address in _listening(process)]
    ports = {one.port for one in cloud.state().components if one.port}
    assert {port for _, port in listening} == ports
    assert {address for address, _ in listening} == {"127.0.0.1"}


def test_the_airflow_command_line_speaks_to_it(cloud: Cloud) -> None:
    answer = cloud.run("airflow", "dags", "list", "--output", "json")
    last = answer.stdout.splitlines()[-1]  # Airflow tells its warnings on the same stream
    assert [dag["dag_id"] for dag in json.loads(last)] == ["little"]


@pytest.mark.parametrize("name", ["storage-server", "storage", "vertex"])
def test_a_killed_stand_in_comes_back_on_its_port_with_its_data(cloud: Cloud, name: str) -> None:
    url = f"{cloud.endpoints()['storage']}"
    upload = f"{url}/upload/storage/v1/b/local-llm-work/o?uploadType=media&name=kept/{name}"
    httpx.post(upload, content=name.encode()).raise_for_status()
    port = cloud.component(name).port
    cloud.kill(name)
    assert cloud.component(name).port == port
    assert httpx.get(f"{url}/storage/v1/b/local-llm-work/o/kept%2F{name}?alt=media").text == name


def test_airflow_s_components_and_its_database_come_back_in_the_middle_of_a_run(cloud: Cloud, api: AirflowApi) -> None:
    api.unpause("little")
    trigger = ["airflow", "dags", "trigger", "little", "--run-id", "killed", "--conf", '{"seconds": 20}']
    assert cloud.run(*trigger).returncode == 0
    _wait(lambda: [task.state for task in api.task_states("little", "killed")] == ["running"], 60, cloud.state)
    cloud.kill(*AIRFLOW)
    cloud.kill("postgres")
    _wait(lambda: api.run_state("little", "killed") in {"success", "failed"}, 180, cloud.state)
    assert api.run_state("little", "killed") == "success"


def test_a_failing_demo_shows_the_end_of_the_log_and_did_not_train_last_night_s_run_too(
    cloud: Cloud, api: AirflowApi
) -> None:
    dag = LITTLE_DAG.replace("def little", "def train_broken").replace("\nlittle()", "\ntrain_broken()")
    dag = dag.replace("retries=2", "retries=0").replace(
        "schedule=None", 'schedule="30 2 * * *", start_date=datetime(2026, 1, 1)'
    )
    (cloud.home.dags / "broken.py").write_text(dag)
    answer = cloud.run("demo", "--experiment", "broken", "--conf", '{"fail": true}')
    assert answer.returncode == 1, answer.stdout + answer.stderr
    assert "The run failed: wait" in answer.stdout
    assert "ValueError: told to fail" in answer.stdout
    assert "deleted scheduled__" in answer.stdout
    assert api.scheduled_runs("train_broken") == []


def test_down_ends_everything_even_when_the_supervisor_was_killed(cloud: Cloud) -> None:
    everything = find_leftovers(cloud.home)
    assert len(everything) > 10
    os.kill(cloud.state().supervisor.pid, 9)
    assert cloud.run("status").returncode == 1
    assert cloud.run("down").returncode == 0
    _wait(lambda: not any(psutil.pid_exists(process.pid) for process in everything), 10, lambda: everything)
    assert find_leftovers(cloud.home) == []
    assert not cloud.home.endpoints_file.exists()


def test_the_data_is_there_after_down_and_up_and_gone_after_a_purge(cloud: Cloud) -> None:
    assert cloud.run("up").returncode == 0
    endpoints = cloud.endpoints()
    kept = httpx.get(f"{endpoints['storage']}/storage/v1/b/local-llm-work/o/kept%2Fvertex?alt=media")
    assert kept.text == "vertex"
    everything = find_leftovers(cloud.home)
    answer = cloud.run("down", "--purge")
    assert answer.stdout.strip() == "stopped"
    assert not any(psutil.pid_exists(process.pid) for process in everything)
    assert not cloud.home.state.exists()
