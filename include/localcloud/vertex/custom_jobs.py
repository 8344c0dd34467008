"""The methods of projects.locations.customJobs, without HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from localcloud.vertex import clock
from localcloud.vertex.defaults import with_defaults
from localcloud.vertex.engine import Engine
from localcloud.vertex.errors import ApiError
from localcloud.vertex.faults import Faults
from localcloud.vertex.filters import parse_filter
from localcloud.vertex.lifecycle import Lifecycle
from localcloud.vertex.paging import decode_place, encode_place, page_size
from localcloud.vertex.records import QUEUED, TERMINAL, JobRecord
from localcloud.vertex.schema import parse_message
from localcloud.vertex.store import Store, created, new_id
from localcloud.vertex.validation import check_custom_job

_OUTPUT_ONLY = ("name", "state", "createTime", "startTime", "endTime", "updateTime", "error", "webAccessUris")
_FIELDS = {
    "displayName": "displayName",
    "display_name": "displayName",
    "state": "state",
    "createTime": "createTime",
    "create_time": "createTime",
}
_TIMES = ("createTime", "startTime", "endTime", "updateTime")
_OPERATION_TYPE = "type.googleapis.com/google.cloud.aiplatform.v1.DeleteOperationMetadata"


class CustomJobs:
    """Create, get, list, cancel, delete; every method raises ApiError as Vertex answers."""

    def __init__(self, store: Store, lifecycle: Lifecycle, engine: Engine, faults: Faults, project_number: str) -> None:
        self._store = store
        self._lifecycle = lifecycle
        self._engine = engine
        self._faults = faults
        self._number = project_number

    def create(self, project: str, location: str, body: Any) -> dict[str, Any]:
        """Store a new job in the queue and return it."""
        job = parse_message("CustomJob", body, "custom_job")
        job = {key: value for key, value in job.items() if key not in _OUTPUT_ONLY}
        check_custom_job(job)
        job = with_defaults(job)
        job_id, now = new_id(), clock.now()
        name = f"projects/{self._number}/locations/{location}/customJobs/{job_id}"
        job = {"name": name, **job, "createTime": now, "updateTime": now}
        record = JobRecord(job_id=job_id, project=project, location=location, job=job)
        with self._store.lock:
            self._lifecycle.set_state(record, QUEUED)
            reply = self._shown(record)
        self._engine.wake()
        return reply

    def get(self, project: str, location: str, job_id: str) -> dict[str, Any]:
        """Return a job."""
        with self._store.lock:
            return self._shown(self._find(project, location, job_id))

    def list(self, project: str, location: str, query: Mapping[str, str]) -> dict[str, Any]:
        """Return a page of jobs, the newest first: filter, pageSize, pageToken, readMask."""
        wanted = parse_filter(query.get("filter", ""), (*_FIELDS, "labels."))
        size = page_size(query.get("pageSize") or query.get("page_size") or "0", 100)
        before = decode_place(query.get("pageToken") or query.get("page_token"))
        with self._store.lock:
            records = sorted(self._store.all(), key=created, reverse=True)
            found = [record for record in records if self._is_in(record, project, location)]
            found = [record for record in found if wanted.accepts(partial(_look_up, self._shown(record)))]
            found = [record for record in found if before is None or created(record) < before]
            page = [
                _masked(self._shown(record), query.get("readMask") or query.get("read_mask")) for record in found[:size]
            ]
        reply: dict[str, Any] = {"customJobs": page} if page else {}
        if len(found) > size:
            reply["nextPageToken"] = encode_place(created(found[size - 1]))
        return reply

    def cancel(self, project: str, location: str, job_id: str) -> dict[str, Any]:
        """Begin to cancel a job; one that has ended is left as it is."""
        with self._store.lock:
            self._lifecycle.cancel(self._find(project, location, job_id))
        self._engine.wake()
        return {}

    def delete(self, project: str, location: str, job_id: str) -> dict[str, Any]:
        """Delete a job that has ended and return a finished operation; its logs stay."""
        with self._store.lock:
            record = self._find(project, location, job_id)
            if record.state not in TERMINAL:
                text = f'The CustomJob "{record.job["name"]}" is in state {record.state} and cannot be deleted.'
                raise ApiError(400, f"{text} Cancel it first.", name="FAILED_PRECONDITION")
            record.deleted = True
            self._store.save(record)
            operation = _deletion(
                f"projects/{self._number}/locations/{location}/operations/{new_id()}",
                clock.moved(clock.now(), self._faults.skew()),
            )
            self._store.save_operation(operation)
        return operation

    def operation(self, operation_id: str) -> dict[str, Any]:
        """Return an operation that a deletion answered."""
        operation = self._store.operation(operation_id)
        if operation is None:
            raise ApiError(404, f"The operation {operation_id} was not found.")
        return operation

    def _shown(self, record: JobRecord) -> dict[str, Any]:
        """The job with its times by the clock that is told; what is kept stays true."""
        skew = self._faults.skew()
        return record.job | {name: clock.moved(record.job[name], skew) for name in _TIMES if name in record.job}

    def _find(self, project: str, location: str, job_id: str) -> JobRecord:
        record = self._store.find(job_id)
        if record is None or not self._is_in(record, project, location):
            name = f"projects/{self._number}/locations/{location}/customJobs/{job_id}"
            raise ApiError(404, f"The CustomJob does not exist. Resource name: {name}")
        return record

    def _is_in(self, record: JobRecord, project: str, location: str) -> bool:
        return project in {record.project, self._number} and location == record.location


def _look_up(job: dict[str, Any], field: str) -> object:
    if field.startswith("labels."):
        return job.get("labels", {}).get(field.removeprefix("labels."))
    return job.get(_FIELDS[field])


def _masked(job: dict[str, Any], mask: str | None) -> dict[str, Any]:
    if not mask or mask == "*":
        return dict(job)
    names = {part.partition(".")[0].replace("_", "").lower() for part in mask.split(",")}
    return {key: value for key, value in job.items() if key.lower() in names}


def _deletion(name: str, now: str) -> dict[str, Any]:
    return {
        "name": name,
        "metadata": {"@type": _OPERATION_TYPE, "genericMetadata": {"createTime": now, "updateTime": now}},
        "done": True,
        "response": {"@type": "type.googleapis.com/google.protobuf.Empty"},
    }
