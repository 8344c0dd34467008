"""Jobs and operations on disk; every save replaces the file whole, so a kill leaves the old one or the new one."""

from __future__ import annotations

import json
import secrets
import threading
from pathlib import Path
from typing import Any

from localcloud.vertex.records import TERMINAL, JobRecord


class Store:
    """All jobs of a state folder. Whoever reads or changes a record holds `lock`."""

    def __init__(self, state: Path) -> None:
        self.lock = threading.RLock()
        self._jobs_folder = state / "jobs"
        self._operations_folder = state / "operations"
        self._jobs_folder.mkdir(parents=True, exist_ok=True)
        self._operations_folder.mkdir(exist_ok=True)
        paths = self._jobs_folder.glob("*/job.json")
        found = [JobRecord.model_validate_json(path.read_text(encoding="utf-8")) for path in paths]
        self._records = {record.job_id: record for record in sorted(found, key=created)}

    def folder(self, record: JobRecord) -> Path:
        """Folder of a job: its record, and a folder per replica and start."""
        return self._jobs_folder / record.job_id

    def save(self, record: JobRecord) -> None:
        """Write a record, new or changed."""
        folder = self.folder(record)
        folder.mkdir(exist_ok=True)
        _replace(folder / "job.json", record.model_dump_json())
        self._records[record.job_id] = record

    def find(self, job_id: str) -> JobRecord | None:
        """Return a job that is not deleted."""
        record = self._records.get(job_id)
        return None if record is None or record.deleted else record

    def all(self, *, deleted: bool = False) -> list[JobRecord]:
        """Return the jobs, oldest first; with the deleted ones (whose logs stay) when asked."""
        return [record for record in self._records.values() if deleted or not record.deleted]

    def live(self) -> list[JobRecord]:
        """Return the jobs that have not ended, oldest first."""
        return [record for record in self._records.values() if record.state not in TERMINAL]

    def save_operation(self, operation: dict[str, Any]) -> None:
        """Keep an operation, so that it can be asked for."""
        _replace(self._operations_folder / f"{operation['name'].rpartition('/')[2]}.json", json.dumps(operation))

    def operation(self, operation_id: str) -> dict[str, Any] | None:
        """Return an operation, or None."""
        path = self._operations_folder / f"{operation_id}.json"
        if not operation_id.isdecimal() or not path.exists():
            return None
        operation: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return operation


def new_id() -> str:
    """Return a number of 19 digits, as Vertex names jobs."""
    return str(10**18 + secrets.randbelow(8 * 10**18))


def created(record: JobRecord) -> tuple[str, str]:
    """Return what jobs are ordered by: creation, then id."""
    return record.job["createTime"], record.job_id


def _replace(path: Path, text: str) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
