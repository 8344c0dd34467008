"""One local cloud with a real Airflow for all live tests."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from tests.live.cloud import Cloud, running_cloud


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bring the shared cloud down last."""
    items.sort(key=lambda item: item.path.name == "test_supervision.py")


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with running_cloud(tmp_path_factory.mktemp("live")) as connected:
        yield connected


@pytest.fixture(scope="session")
def rest(cloud: Cloud) -> Iterator[httpx.Client]:
    """Airflow's REST API, logged in."""
    login = {"username": cloud.endpoints["airflow_user"], "password": cloud.endpoints["airflow_password"]}
    with httpx.Client(base_url=cloud.endpoints["airflow"], timeout=30) as client:
        token = client.post("/auth/token", json=login).raise_for_status().json()["access_token"]
        client.headers["authorization"] = f"Bearer {token}"
        yield client
