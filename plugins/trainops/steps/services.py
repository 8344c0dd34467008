"""The Google services of one environment, connected as they are needed."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from trainops.config.gpu_pools import load_gpu_pools
from trainops.gcp.logs import Logs
from trainops.gcp.storage import Storage
from trainops.gcp.vertex import Vertex, region_of
from trainops.settings import Settings
from trainops.steps.gpu_queue import GpuQueue


class Services:
    """Storage, Vertex, logs and the queue of an environment.

    :param settings: the environment.
    :param credentials: of Google; handed in by the Airflow hook, or None for what the environment says.
    """

    def __init__(self, settings: Settings, credentials: Any = None) -> None:
        self.settings = settings
        self._credentials = credentials
        self._vertex: dict[str, Vertex] = {}

    @cached_property
    def storage(self) -> Storage:
        """Object storage."""
        return Storage.connect(self.settings, self._credentials)

    @cached_property
    def logs(self) -> Logs:
        """The replicas' log lines."""
        return Logs.connect(self.settings, self._credentials)

    @cached_property
    def queue(self) -> GpuQueue:
        """The GPU queue."""
        return GpuQueue(self.storage, self.settings.work, load_gpu_pools())

    def now(self) -> datetime:
        """The time by which deadlines are judged."""
        return datetime.now(UTC)

    def close(self) -> None:
        """Close the connections that were opened."""
        opened = [self.__dict__.get("storage"), self.__dict__.get("logs"), *self._vertex.values()]
        for client in opened:
            if client is not None:
                client.close()

    def vertex(self, region: str) -> Vertex:
        """Custom jobs of a region."""
        if region not in self._vertex:
            self._vertex[region] = Vertex.connect(self.settings, self._credentials, region)
        return self._vertex[region]

    def vertex_of(self, job_name: str) -> Vertex:
        """Custom jobs of the region in which a job is."""
        return self.vertex(region_of(job_name))
