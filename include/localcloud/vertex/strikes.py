"""Faults that strike a running job at once."""

from __future__ import annotations

from typing import Any

from localcloud.vertex.errors import ApiError
from localcloud.vertex.faults import KillReplica, SpotLoss
from localcloud.vertex.lifecycle import Lifecycle
from localcloud.vertex.records import JobRecord
from localcloud.vertex.replicas import Replicas
from localcloud.vertex.store import Store


class Strikes:
    """Takes machines away and sends signals."""

    def __init__(self, store: Store, lifecycle: Lifecycle, replicas: Replicas) -> None:
        self._store = store
        self._lifecycle = lifecycle
        self._replicas = replicas

    def strike(self, fault: SpotLoss | KillReplica) -> dict[str, Any]:
        """Do it and tell whether anything was struck; ApiError 404 when the job or replica does not exist."""
        with self._store.lock:
            record = self._store.find(fault.job.rpartition("/")[2])
            if record is None:
                raise ApiError(404, f"There is no job {fault.job}.")
            if isinstance(fault, SpotLoss):
                return {"struck": self._lifecycle.lose_machines(record, final=fault.final)}
            return {"struck": self._kill(record, fault)}

    def _kill(self, record: JobRecord, fault: KillReplica) -> bool:
        if fault.replica not in record.replicas:
            raise ApiError(404, f"The job {record.job_id} has no replica {fault.replica}.")
        return self._replicas.send_signal(record, fault.replica, fault.signal)
