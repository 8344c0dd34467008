"""One local cloud with a real Airflow for all live tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.live.cloud import Cloud, running_cloud
from tests.live.ways_in import begin_ways_in

LAST = ("test_ways_in", "test_case_kills", "test_chaos", "test_supervision")
"""The ways in begin their runs first and are looked at late; then components are killed, and the cloud comes down."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the modules into their order; within one the tests stay as they are."""
    live = [item for item in items if item.path.parent == Path(__file__).parent]
    live.sort(key=lambda item: LAST.index(item.path.stem) if item.path.stem in LAST else -1)
    items[:] = [item for item in items if item not in live] + live


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with running_cloud(tmp_path_factory.mktemp("live")) as connected:
        yield connected


@pytest.fixture(scope="session", autouse=True)
def ways_in(request: pytest.FixtureRequest) -> None:
    """Begin the runs of `test_ways_in`, if that is among the tests: they take minutes, most of them waiting."""
    if any(item.path.stem == "test_ways_in" for item in request.session.items):
        begin_ways_in(request.getfixturevalue("cloud"))


@pytest.fixture(scope="session")
def rest(cloud: Cloud) -> Iterator[httpx.Client]:
    """Airflow's REST API, logged in."""
    login = {"username": cloud.endpoints["airflow_user"], "password": cloud.endpoints["airflow_password"]}
    with httpx.Client(base_url=cloud.endpoints["airflow"], timeout=30) as client:
        token = client.post("/auth/token", json=login).raise_for_status().json()["access_token"]
        client.headers["authorization"] = f"Bearer {token}"
        yield client
