"""The Vertex stand-in, one for this folder; each test has a project of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tests.integration.run.old_task import Seen
from tests.integration.run.one_job import OneJob

from trainops.settings import Settings

POOLS = [
    {"accelerator": "NVIDIA_TESLA_T4", "region": region, "provisioning": model, "quota": 2}
    for region, model in [("us-central1", "standard"), ("us-central1", "spot"), ("us-east1", "standard")]
]


@pytest.fixture(scope="session")
def vertex_url(start_vertex: Callable[[Path], str]) -> str:
    return start_vertex(Path(sys.executable))


@pytest.fixture
def vertex_faults(vertex_url: str) -> Iterator[Callable[..., None]]:
    """Tells the stand-in to misbehave; it behaves again after the test."""

    def tell(kind: str, **details: Any) -> None:
        httpx.post(f"{vertex_url}/faults", json={"kind": kind, **details}).raise_for_status()

    yield tell
    httpx.delete(f"{vertex_url}/faults").raise_for_status()


@pytest.fixture
def seen(vertex_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Seen:
    """The stand-ins as the environment of every operator and sensor."""
    values = vertex_settings.model_dump(by_alias=True, mode="json", exclude_none=True, exclude={"name"})
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "test.yaml").write_text(yaml.safe_dump(values | {"poll_seconds": 1}))
    pool = {"accelerator": "NVIDIA_TESLA_T4", "region": "us-central1", "provisioning": "standard", "quota": 2}
    (tmp_path / "gpu_pools.yaml").write_text(yaml.safe_dump({"pools": [pool]}))
    monkeypatch.setenv("TRAINOPS_CONFIGS", str(tmp_path))
    monkeypatch.setenv("TRAINOPS_ENVIRONMENT", "test")
    return Seen(vertex_settings)


@pytest.fixture
def job(
    vertex_settings: Settings, vertex_faults: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> OneJob:
    """A job key of its own project, with pools in two regions, one of them of Spot machines as well."""
    monkeypatch.setenv("TRAINOPS_CONFIGS", str(tmp_path))
    (tmp_path / "gpu_pools.yaml").write_text(yaml.safe_dump({"pools": POOLS}))
    return OneJob(vertex_settings, vertex_faults)
