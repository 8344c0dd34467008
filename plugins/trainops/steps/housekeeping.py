"""What nobody follows any more: runs whose own teardown never came to an end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trainops import naming
from trainops.errors import IntegrityError, TrainopsError
from trainops.policy.lifecycle import TERMINAL
from trainops.steps.end import end_job_key
from trainops.steps.preemption import follow_leaving
from trainops.steps.record_store import RecordStore, records_below
from trainops.steps.services import Services

RunState = Callable[[str, str], str | None]
"""dag_id, run_id -> state of the DAG run, None when there is no such run."""

Say = Callable[[str], None]

LIVE = " AND ".join([
    f'labels.managed-by="{naming.MANAGED_BY}"', *(f'state!="{state}"' for state in sorted(TERMINAL)),
])  # fmt: skip
"""Filter of a list: without it every housekeeping would read all jobs that the project ever had."""


def end_abandoned(services: Services, state_of: RunState, *, say: Say) -> dict[str, Any]:
    """End the job keys whose DAG run is over or gone; tell what was ended, kept, and could not be ended or looked at.

    What cannot be looked at hides nothing else: a region whose jobs may not be listed leaves leases, requests and the
    other regions.
    """
    told: dict[str, list[str]] = {"ended": [], "kept": [], "failed": [], "unseen": []}
    for store in _open_records(services, told["unseen"], say):
        try:
            how, job_key = _end_if_abandoned(services, store, state_of, say)
        except TrainopsError as error:
            how, job_key = "failed", store.uri
            say(f"{store.uri} could not be ended: {error}")
        told[how].append(job_key)
    _tick(services, told["unseen"], say)
    return told


def _tick(services: Services, unseen: list[str], say: Say) -> None:
    """Look at the GPU queue for those whose own process is gone, and follow who was asked to leave."""
    try:
        tick = services.queue.tick()
        follow_leaving(services, tick.ledger, actor="housekeeping", say=say)
    except TrainopsError as error:
        say(f"the GPU queue could not be looked at: {error}")
        if "the GPU queue" not in unseen:
            unseen.append("the GPU queue")


def _end_if_abandoned(services: Services, store: RecordStore, state_of: RunState, say: Say) -> tuple[str, str]:
    record = store.load()
    state = state_of(record.owner.dag_id, record.owner.run_id)
    if state not in {"success", "failed", None}:
        return "kept", record.job_key
    why = f"its DAG run {record.owner.run_id} is {state or 'gone'}"
    try:
        end_job_key(services, store, actor="housekeeping", why=why, say=say, patience_seconds=120.0)
    except TrainopsError as error:
        say(f"{record.job_key} could not be ended: {error}")
        return "failed", record.job_key
    return "ended", record.job_key


def _open_records(services: Services, unseen: list[str], say: Say) -> list[RecordStore]:
    """The records that live jobs, leases and queue requests name: all that can still cost something.

    :param unseen: gets what could not be looked at.
    """
    uris: set[str] = set()
    for what, look in _places(services):
        try:
            uris |= look()
        except TrainopsError as error:
            say(f"{what} could not be looked at: {error}")
            unseen.append(what)
    for problem in services.queue.unread:
        say(problem)
        unseen.append(problem)
    return [RecordStore(services.storage, uri) for uri in sorted(uris) if services.storage.exists(uri)]


def _places(services: Services) -> list[tuple[str, Callable[[], set[str]]]]:
    """Where something may be left, in words, and what finds the records of it."""
    regions = {services.settings.region} | {pool.region for pool in services.queue.pools.pools}
    jobs = [(f"the jobs in {region}", lambda region=region: _of_jobs(services, region)) for region in sorted(regions)]
    return [("the GPU queue", lambda: _of_queue(services)), *jobs]


def _of_queue(services: Services) -> set[str]:
    ledger, requests = services.queue.snapshot()
    return {entry.record for entry in ledger.leases.values()} | {request.record for request in requests}


def _of_jobs(services: Services, region: str) -> set[str]:
    jobs = services.vertex(region).list(LIVE, ("name", "state", "labels"))
    live = [job for job in jobs if job.get("state") not in TERMINAL]
    return {uri for job in live for uri in _records_of(services, job.get("labels", {}))}


def _records_of(services: Services, labels: dict[str, str]) -> list[str]:
    """The record whose job key a live job carries; a job without one is not ours to end."""
    folder = naming.run_folder(services.settings.work, labels.get("experiment", ""), labels.get("run-key", ""))
    stores = records_below(services.storage, folder) if "run-key" in labels else ()
    return [store.uri for store in stores if _may_be_of(store, labels.get("job-key", ""))]


def _may_be_of(store: RecordStore, label: str) -> bool:
    """True of the record of that job key, and of one that cannot be read: who ends it tells why."""
    try:
        return naming.label_value(store.load().job_key) == label
    except IntegrityError:
        return True
