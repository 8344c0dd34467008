"""What nobody follows any more: runs whose own teardown never came to an end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trainops import naming
from trainops.errors import TrainopsError
from trainops.policy.lifecycle import TERMINAL
from trainops.steps.end import end_job_key
from trainops.steps.record_store import RecordStore, records_below
from trainops.steps.services import Services

RunState = Callable[[str, str], str | None]
"""dag_id, run_id -> state of the DAG run, None when there is no such run."""


def open_records(services: Services) -> list[RecordStore]:
    """The records that live jobs, leases and queue requests name: all that can still cost something."""
    ledger, requests = services.queue.snapshot()
    uris = {entry.record for entry in ledger.leases.values()} | {request.record for request in requests}
    regions = {services.settings.region} | {pool.region for pool in services.queue.pools.pools}
    for region in sorted(regions):
        for job in services.vertex(region).list(f'labels.managed-by="{naming.MANAGED_BY}"'):
            if job.get("state") not in TERMINAL:
                uris.update(_records_of(services, job.get("labels", {})))
    return [RecordStore(services.storage, uri) for uri in sorted(uris) if services.storage.exists(uri)]


def _records_of(services: Services, labels: dict[str, str]) -> list[str]:
    """The record whose job key a live job carries; a job without one is not ours to end."""
    folder = naming.run_folder(services.settings.work, labels.get("experiment", ""), labels.get("run-key", ""))
    stores = records_below(services.storage, folder) if "run-key" in labels else ()
    return [store.uri for store in stores if naming.label_value(store.load().job_key) == labels.get("job-key")]


def end_abandoned(services: Services, state_of: RunState, *, say: Callable[[str], None]) -> dict[str, Any]:
    """End the job keys whose DAG run is over or gone; tell what was ended, kept, and could not be ended."""
    told: dict[str, list[str]] = {"ended": [], "kept": [], "failed": []}
    for store in open_records(services):
        record = store.load()
        state = state_of(record.owner.dag_id, record.owner.run_id)
        if state not in {"success", "failed", None}:
            told["kept"].append(record.job_key)
            continue
        why = f"its DAG run {record.owner.run_id} is {state or 'gone'}"
        try:
            end_job_key(services, store, actor="housekeeping", why=why, say=say, patience_seconds=120.0)
        except TrainopsError as error:
            say(f"{record.job_key} could not be ended: {error}")
            told["failed"].append(record.job_key)
        else:
            told["ended"].append(record.job_key)
    return told
