"""Drives a job from QUEUED to its end, one observation at a time.

Every step reads what is on disk and saves before it acts, so the server may be killed between any two of them.
"""

from __future__ import annotations

import time
from typing import Any

from localcloud.vertex import clock, verdicts
from localcloud.vertex.faults import FailedJob, Faults, JobError
from localcloud.vertex.journal import Journal
from localcloud.vertex.logs import Logs
from localcloud.vertex.processes import Observation
from localcloud.vertex.quota import Quotas
from localcloud.vertex.records import (
    CANCELLED,
    CANCELLING,
    FAILED,
    PENDING,
    QUEUED,
    RUNNING,
    SUCCEEDED,
    TERMINAL,
    Ending,
    JobRecord,
    task_of,
)
from localcloud.vertex.replicas import INSTALL, Replicas
from localcloud.vertex.scheduling_rules import seconds
from localcloud.vertex.store import Store

_TAIL_LINES = 20
_SETTLING_SECONDS = 0.3
_TEXTS = {
    QUEUED: "Vertex AI is setting up your job.",
    PENDING: "Waiting for training program to start.",
    RUNNING: "Training program has started.",
    SUCCEEDED: "Job completed successfully.",
    FAILED: "Job failed.",
    CANCELLING: "Job is being cancelled.",
    CANCELLED: "Job is cancelled.",
}


class Lifecycle:
    """The rules of states. Callers hold the store's lock."""

    def __init__(
        self, store: Store, journal: Journal, logs: Logs, replicas: Replicas, quotas: Quotas, faults: Faults
    ) -> None:
        self._store = store
        self._journal = journal
        self._logs = logs
        self._replicas = replicas
        self._quotas = quotas
        self._faults = faults

    def advance(self, record: JobRecord) -> None:
        """Take every step that is due for a live job."""
        if record.ending is not None:
            self._end(record, record.ending)
            return
        if record.state in {QUEUED, PENDING} and self._waited_too_long(record):
            self._begin_end(record, Ending(state=FAILED, error=verdicts.stockout(record.location)))
            return
        if record.state == QUEUED and self._quotas.fits(record, self._store.live()):
            self.set_state(record, PENDING)
        if record.state == PENDING:
            self._provision(record)
        elif record.state == RUNNING:
            self._watch(record)

    def cancel(self, record: JobRecord) -> None:
        """Begin to cancel; nothing happens to a job that has ended."""
        if record.state in TERMINAL or record.state == CANCELLING:
            return
        if record.state == RUNNING and record.ending is None:
            self._watch(record)
        if record.state in TERMINAL or (record.ending is not None and record.ending.state in TERMINAL):
            return
        late = self._faults.take_slow_cancel()
        self._cancel(record, Ending(state=CANCELLED, error=verdicts.cancelled(), signal_at=time.time() + late))

    def lose_machines(self, record: JobRecord, *, final: bool) -> bool:
        """Take the machines of a provisioned job away; return whether there were any to take."""
        if record.state not in {PENDING, RUNNING} or record.ending is not None:
            return False
        record.spot_losses += 1
        self._logs.write(record, "Spot VMs of the job were preempted.")
        final = final or record.spot_losses > verdicts.SPOT_RESTARTS or self._no_retries(record)
        state, error = (FAILED, verdicts.stockout(record.location)) if final else (PENDING, None)
        self._begin_end(record, Ending(state=state, error=error, kill=True))
        return True

    def set_state(self, record: JobRecord, state: str, error: dict[str, Any] | None = None) -> None:
        """Put a job into a state: times, journal, the service's log line, disk."""
        now = clock.now()
        record.job["state"] = state
        record.job["updateTime"] = now
        if state == RUNNING:
            record.job.setdefault("startTime", now)
        if state in TERMINAL:
            record.job["endTime"] = now
        if error is not None:
            record.job["error"] = error
        self._store.save(record)
        self._journal.add("job_state", time=now, job=record.job_id, state=state, attempt=record.attempt, error=error)
        self._logs.write(record, _TEXTS[state] if error is None else f"{_TEXTS[state]} {error['message']}")

    def _provision(self, record: JobRecord) -> None:
        if time.time() < record.retry_at:
            return
        if "startTime" not in record.job and record.install.starts == 0 and self._out_of_stock(record):
            return
        image = _image_without_command(record)
        if image:
            self.set_state(record, FAILED, verdicts.cannot_run_image(image))
            return
        if "startTime" not in record.job and record.install.starts == 0 and self._fails_by_fault(record):
            return
        if self._replicas.needs_install(record):
            self._replicas.install(record)
        if record.install.starts == 0 or self._is_installed(record):
            self._start_all(record)

    def _waited_too_long(self, record: JobRecord) -> bool:
        limit = seconds(record.scheduling.get("maxWaitDuration", "86400s"))
        if not _is_flex_start(record) or limit == 0 or "startTime" in record.job:
            return False
        return time.time() > clock.parse(record.job["createTime"]).timestamp() + limit

    def _out_of_stock(self, record: JobRecord) -> bool:
        fault = self._faults.take_stockout(record.location, set(record.accelerators()))
        if fault is None:
            return False
        # Flex-start jobs wait for machines as long as maxWaitDuration says.
        record.stockouts += not _is_flex_start(record)
        record.retry_at = time.time() + fault.retry_seconds
        if record.stockouts > verdicts.STOCKOUT_RESTARTS or self._no_retries(record):
            self.set_state(record, FAILED, verdicts.stockout(record.location))
        else:
            self._store.save(record)
        return True

    def _fails_by_fault(self, record: JobRecord) -> bool:
        fault = self._faults.take_job_error()
        if fault is not None:
            self.set_state(record, FAILED, _error_of(fault, record))
        return fault is not None

    def _is_installed(self, record: JobRecord) -> bool:
        found = self._replicas.observe(record, INSTALL)
        if found.kind == "running":
            return False
        if found.kind == "exited" and found.code == 0:
            return True
        if found.kind == "exited" and not found.stopped and record.install.attempt == record.attempt:
            self._fail_replica(record, "workerpool0-0", found.code, INSTALL)
        else:
            # It ended with the server or with its machine: once more, from the beginning.
            self._replicas.install(record)
        return False

    def _start_all(self, record: JobRecord) -> None:
        if not record.ports:
            self._replicas.assign_ports(record)
        for name in record.replica_names():
            process = record.replicas.get(name)
            started = process is not None and process.attempt == record.attempt
            if not started or self._replicas.observe(record, name).kind in {"absent", "lost"}:
                self._replicas.start(record, name)
        self.set_state(record, RUNNING)

    def _watch(self, record: JobRecord) -> None:
        if self._is_over_time(record):
            limit = record.scheduling.get("timeout", "604800s")
            text = f"The job was cancelled because it ran longer than its timeout of {limit}."
            self._cancel(record, Ending(state=CANCELLED, error=verdicts.cancelled(text)))
            return
        names = record.replica_names()
        found = {name: self._replicas.observe(record, name) for name in names}
        if found[names[0]].kind == "exited" and found[names[0]].code == 0 and not found[names[0]].stopped:
            self._begin_end(record, Ending(state=SUCCEEDED))
            return
        # The first to fall is the cause, and a worker that falls because the primary has just finished is none.
        settling = _SETTLING_SECONDS if len(names) > 1 else 0.0
        for name in sorted(names, key=lambda name: found[name].time):
            if record.ending is None and time.time() >= found[name].time + settling:
                self._judge(record, name, found[name])

    def _is_over_time(self, record: JobRecord) -> bool:
        limit = seconds(record.scheduling.get("timeout", "604800s"))
        started = clock.parse(record.job["startTime"]).timestamp()
        return time.time() > started + limit

    def _judge(self, record: JobRecord, name: str, found: Observation) -> None:
        if found.kind == "absent":
            self._replicas.start(record, name)
        elif found.kind == "lost":
            self._restart_after_internal_error(record)
        elif found.kind == "exited" and found.stopped:
            # Stopped with the server, not by a cancel: the job goes on with a new attempt.
            self._begin_end(record, Ending(state=PENDING))
        elif found.kind == "exited" and found.code != 0:
            self._judge_failure(record, name, found.code)

    def _restart_after_internal_error(self, record: JobRecord) -> None:
        record.internal_errors += 1
        if record.internal_errors > verdicts.INTERNAL_RESTARTS or self._no_retries(record):
            self._begin_end(record, Ending(state=FAILED, error=verdicts.internal_error()))
        else:
            self._begin_end(record, Ending(state=PENDING))

    def _judge_failure(self, record: JobRecord, name: str, code: int) -> None:
        process = record.replicas[name]
        if not verdicts.is_retried(code) or self._no_retries(record):
            self._fail_replica(record, name, code, name)
        elif process.restarts < verdicts.WORKER_RESTARTS:
            process.restarts += 1
            self._logs.write(record, f"Replica {name} exited with status {code} and is restarted.")
            self._restart_worker(record, name)
        elif record.job_restarts < verdicts.JOB_RESTARTS:
            record.job_restarts += 1
            self._begin_end(record, Ending(state=PENDING))
        else:
            self._fail_replica(record, name, code, name)

    def _restart_worker(self, record: JobRecord, name: str) -> None:
        if not record.scheduling.get("restartJobOnWorkerRestart"):
            self._replicas.start(record, name)
            return
        restarts = {other: process.restarts for other, process in record.replicas.items()}
        self._begin_end(record, Ending(state=PENDING, keep_restarts=restarts))

    def _fail_replica(self, record: JobRecord, name: str, code: int, process: str) -> None:
        start = self._replicas.folder(record, process).name
        lines = self._logs.tail(record, f"{process}/{start}", _TAIL_LINES)
        error = verdicts.replica_failed(name, code, lines, _logs_url(record))
        self._begin_end(record, Ending(state=FAILED, error=error))

    def _no_retries(self, record: JobRecord) -> bool:
        return bool(record.scheduling.get("disableRetries"))

    def _cancel(self, record: JobRecord, ending: Ending) -> None:
        record.ending = ending
        self.set_state(record, CANCELLING)
        self._end(record, ending)

    def _begin_end(self, record: JobRecord, ending: Ending) -> None:
        record.ending = ending
        self._store.save(record)
        self._end(record, ending)

    def _end(self, record: JobRecord, ending: Ending) -> None:
        running = self._replicas.running(record)
        if running and time.time() >= ending.signal_at:
            for name in running:
                self._replicas.stop(record, name, kill=ending.kill)
        if running:
            return
        record.ending = None
        if ending.state == PENDING:
            self._prepare_attempt(record, ending)
        elif record.state == CANCELLING and _succeeded_first(record, ending):
            self.set_state(record, SUCCEEDED)
            return
        self.set_state(record, ending.state, ending.error)

    def _prepare_attempt(self, record: JobRecord, ending: Ending) -> None:
        record.attempt += 1
        record.ports = {}
        for name, process in record.replicas.items():
            process.restarts = ending.keep_restarts.get(name, 0)


def _succeeded_first(record: JobRecord, ending: Ending) -> bool:
    """Return whether the primary finished while a late cancel had not signalled it yet."""
    primary = record.replicas.get(record.replica_names()[0])
    return primary is not None and primary.exit_code == 0 and time.time() < ending.signal_at


def _is_flex_start(record: JobRecord) -> bool:
    return record.scheduling.get("strategy") == "FLEX_START"


def _image_without_command(record: JobRecord) -> str | None:
    tasks = [task_of(pool) for pool in record.pools.values()]
    return next((task["imageUri"] for task in tasks if "imageUri" in task and not task.get("command")), None)


def _error_of(fault: JobError | FailedJob, record: JobRecord) -> dict[str, Any]:
    if isinstance(fault, FailedJob):
        return {"code": fault.code, "message": fault.message}
    project_number = record.job["name"].split("/")[1]
    if fault.kind == "image_pull":
        return verdicts.image_pull(
            f"projects/{record.project}/locations/{record.location}/repositories/images", project_number
        )
    if fault.kind == "permission":
        agent = f"service-{project_number}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com"
        account = record.spec.get("serviceAccount", agent)
        return verdicts.permission(account, "gs://my-bucket/data/shard-0.bin")
    return verdicts.internal_error()


def _logs_url(record: JobRecord) -> str:
    query = f"resource.type%3D%22ml_job%22%0Aresource.labels.job_id%3D%22{record.job_id}%22"
    return f"https://console.cloud.google.com/logs/query;query={query}?project={record.project}"
