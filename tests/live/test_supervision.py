"""The local cloud itself, the one that all live tests share: killed piece by piece, and brought down at the end."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import httpx
import psutil
import pytest

from localcloud.leftovers import find_leftovers
from localcloud.state import CloudState

if TYPE_CHECKING:
    from tests.live.cloud import Cloud

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]

AIRFLOW = ("api-server", "scheduler", "dag-processor", "triggerer")


def test_up_publishes_addresses_and_login_to_the_owner_alone(cloud: Cloud) -> None:
    assert set(cloud.endpoints) == {
        "vertex",
        "storage",
        "logging",
        "airflow",
        "airflow_user",
        "airflow_password",
        "pid",
    }
    assert cloud.home.endpoints_file.stat().st_mode & 0o777 == 0o600


def test_a_second_up_finds_everything_running(cloud: Cloud) -> None:
    before = _state(cloud).supervisor
    answer = cloud.localcloud("up")
    assert answer.returncode == 0
    assert cloud.endpoints["airflow"] in answer.stdout
    assert _state(cloud).supervisor == before


def test_both_buckets_exist(cloud: Cloud) -> None:
    answer = httpx.get(f"{cloud.endpoints['storage']}/storage/v1/b").json()
    there = {item["name"] for item in answer["items"]}
    assert there >= {"local-llm-work", "local-llm-models"}  # other tests add theirs


def test_nothing_listens_on_any_interface_but_loopback(cloud: Cloud) -> None:
    processes = [psutil.Process(_state(cloud).supervisor.pid), *find_leftovers(cloud.home)]
    listening = [address for process in processes for address in _listening(process)]
    assert {one.port for one in _state(cloud).components if one.port} <= {port for _, port in listening}
    assert {address for address, _ in listening} == {"127.0.0.1"}


def test_the_airflow_command_line_speaks_to_it(cloud: Cloud) -> None:
    last = cloud.airflow("dags", "list", "--output", "json").splitlines()[-1]  # warnings come on the same stream
    assert {"little", "housekeeping", "promote", "train_manual"} <= {dag["dag_id"] for dag in json.loads(last)}


@pytest.mark.parametrize("name", ["storage-server", "storage", "vertex"])
def test_a_killed_stand_in_comes_back_on_its_port_with_its_data(cloud: Cloud, name: str) -> None:
    url = cloud.endpoints["storage"]
    upload = f"{url}/upload/storage/v1/b/local-llm-work/o?uploadType=media&name=kept/{name}"
    httpx.post(upload, content=name.encode()).raise_for_status()
    port = cloud.component(name).port
    cloud.kill(name)
    assert cloud.component(name).port == port
    assert httpx.get(f"{url}/storage/v1/b/local-llm-work/o/kept%2F{name}?alt=media").text == name


@pytest.mark.full  # the live kills are those of test_chaos
def test_airflow_s_components_and_its_database_come_back_in_the_middle_of_a_run(cloud: Cloud) -> None:
    cloud.api.unpause("little")
    run = cloud.trigger("little", "killed", {"seconds": 20})
    cloud.until(lambda: cloud.states("little", run) == {"wait": "running"}, 60, lambda: _state(cloud))
    cloud.kill(*AIRFLOW)
    cloud.kill("postgres")
    assert cloud.finish("little", run, 240) == "success"


def test_a_failing_demo_shows_the_end_of_the_log(cloud: Cloud) -> None:
    dag = (cloud.home.dags / "little.py").read_text().replace("def little", "def train_failing")
    (cloud.home.dags / "failing.py").write_text(dag.replace("\nlittle()", "\ntrain_failing()"))
    answer = cloud.localcloud("demo", "--experiment", "failing", "--conf", '{"fail": true}')
    assert answer.returncode == 1, answer.stdout + answer.stderr
    assert "The run failed: wait" in answer.stdout
    assert "ValueError: told to fail" in answer.stdout


def test_down_ends_everything_even_when_the_supervisor_was_killed(cloud: Cloud) -> None:
    everything = find_leftovers(cloud.home)
    assert len(everything) > 10
    os.kill(_state(cloud).supervisor.pid, 9)
    assert cloud.localcloud("status").returncode == 1
    assert cloud.localcloud("down", "--purge").returncode == 0
    cloud.until(lambda: not any(map(_is_alive, everything)), 5, lambda: everything)
    assert find_leftovers(cloud.home) == []
    assert not cloud.home.state.exists()


def _state(cloud: Cloud) -> CloudState:
    state = CloudState.load(cloud.home.state_file)
    assert state is not None
    return state


def _listening(process: psutil.Process) -> list[tuple[str, int]]:
    try:
        connections = process.net_connections()
    except psutil.NoSuchProcess:  # Airflow's short-lived children come and go
        return []
    return [(one.laddr.ip, one.laddr.port) for one in connections if one.status == psutil.CONN_LISTEN]


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
