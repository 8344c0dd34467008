"""What the stand-in knows of a job beyond the CustomJob that it shows: the part that must survive a restart."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

QUEUED = "JOB_STATE_QUEUED"
PENDING = "JOB_STATE_PENDING"
RUNNING = "JOB_STATE_RUNNING"
SUCCEEDED = "JOB_STATE_SUCCEEDED"
FAILED = "JOB_STATE_FAILED"
CANCELLING = "JOB_STATE_CANCELLING"
CANCELLED = "JOB_STATE_CANCELLED"
TERMINAL = frozenset({SUCCEEDED, FAILED, CANCELLED})


class Process(BaseModel):
    """One replica, or the installation of packages, over its starts."""

    attempt: int = 0
    """Attempt of the job that the newest start belongs to."""
    starts: int = 0
    """How often it was started; the number of its newest folder."""
    announced: int = 0
    """The newest start that the journal tells of."""
    restarts: int = 0
    """Restarts of this worker within the attempt."""
    exit_code: int | None = None
    """How the newest start ended; negative for a signal; None while it runs."""


class Ending(BaseModel):
    """What becomes of a job once its processes are gone."""

    state: str
    """State to go to; PENDING for another attempt."""
    error: dict[str, Any] | None = None
    """google.rpc.Status of the job."""
    kill: bool = False
    """End the processes by SIGKILL at once, as a machine that is taken away."""
    signal_at: float = 0.0
    """Not before this time (seconds since 1970)."""
    keep_restarts: dict[str, int] = {}
    """Restarts of workers that the next attempt still counts."""


class JobRecord(BaseModel):
    """A job."""

    job_id: str
    project: str
    """Project as the creator wrote it; names show the project's number."""
    location: str
    job: dict[str, Any]
    """The CustomJob in canonical JSON."""
    deleted: bool = False
    attempt: int = 1
    job_restarts: int = 0
    """Restarts of the whole job after crashes of workers."""
    internal_errors: int = 0
    spot_losses: int = 0
    stockouts: int = 0
    retry_at: float = 0.0
    """Provisioning is tried again at this time (seconds since 1970)."""
    install: Process = Process()
    ports: dict[str, list[int]] = {}
    """Ports of the cluster's addresses, by worker pool."""
    replicas: dict[str, Process] = {}
    """By name, such as workerpool1-0; empty before the first start."""
    ending: Ending | None = None

    @property
    def state(self) -> str:
        """State of the job."""
        return str(self.job["state"])

    @property
    def spec(self) -> dict[str, Any]:
        """The CustomJobSpec."""
        spec: dict[str, Any] = self.job["jobSpec"]
        return spec

    @property
    def scheduling(self) -> dict[str, Any]:
        """The Scheduling of the spec, maybe empty."""
        scheduling: dict[str, Any] = self.spec.get("scheduling", {})
        return scheduling

    @property
    def pools(self) -> dict[str, dict[str, Any]]:
        """Worker pools that are not skipped, by the name that replicas carry."""
        return {f"workerpool{index}": pool for index, pool in enumerate(self.spec["workerPoolSpecs"]) if pool}

    def replica_names(self) -> list[str]:
        """Names of all replicas, the primary first."""
        return [f"{pool}-{index}" for pool, spec in self.pools.items() for index in range(replica_count(spec))]

    def accelerators(self) -> dict[str, int]:
        """GPUs over all replicas, by type."""
        total: dict[str, int] = {}
        for pool in self.pools.values():
            machine = pool["machineSpec"]
            if machine.get("acceleratorCount"):
                kind = machine["acceleratorType"]
                total[kind] = total.get(kind, 0) + machine["acceleratorCount"] * replica_count(pool)
        return total


def replica_count(pool: dict[str, Any]) -> int:
    """Return the replicas of a worker pool; one when it does not say."""
    return int(pool.get("replicaCount", "1"))


def task_of(pool: dict[str, Any]) -> dict[str, Any]:
    """Return the python package spec or container spec of a worker pool."""
    task: dict[str, Any] = pool.get("pythonPackageSpec") or pool["containerSpec"]
    return task
