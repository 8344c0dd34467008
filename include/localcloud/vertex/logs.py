"""Lines of replicas, as Cloud Logging's entries."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from localcloud.vertex import clock
from localcloud.vertex.errors import ApiError
from localcloud.vertex.faults import Faults
from localcloud.vertex.filters import UNKNOWN, Filter, parse_filter
from localcloud.vertex.paging import decode_place, encode_place, page_size
from localcloud.vertex.records import JobRecord
from localcloud.vertex.store import Store

_FIELDS = (
    "resource.type",
    "resource.labels.",
    "labels.",
    "timestamp",
    "severity",
    "textPayload",
    "jsonPayload.",
    "logName",
    "insertId",
)
_SEVERITIES = {"out": "INFO", "err": "ERROR"}
Entry = dict[str, Any]


class Logs:
    """All log lines of a store's jobs; files are read on from where the last call stopped."""

    def __init__(self, store: Store, faults: Faults) -> None:
        self._store = store
        self._faults = faults
        self._files: dict[Path, _LogFile] = {}
        self._lock = threading.Lock()

    def entries(self, body: dict[str, Any]) -> dict[str, Any]:
        """Answer `entries:list`: filter, orderBy, pageSize, pageToken; ApiError 400 for what it cannot read."""
        order = body.get("orderBy") or "timestamp asc"
        if order not in {"timestamp", "timestamp asc", "timestamp desc"}:
            raise ApiError(400, f'Invalid order_by: "{order}"; supported: "timestamp asc", "timestamp desc".')
        descending = order == "timestamp desc"
        size = page_size(body.get("pageSize", 0), 50)
        found = sorted(self._matching(body), key=_place, reverse=descending)
        after = decode_place(body.get("pageToken"))
        if after is not None:
            found = [entry for entry in found if (_place(entry) < after if descending else _place(entry) > after)]
        reply: dict[str, Any] = {"entries": found[:size]} if found else {}
        if len(found) > size:
            reply["nextPageToken"] = encode_place(_place(found[size - 1]))
        return reply

    def tail(self, record: JobRecord, folder: str, count: int) -> list[str]:
        """Return the last lines of one start of a process, such as "workerpool0-0/001"."""
        lines = self._lines(self._store.folder(record) / folder / "log.jsonl")
        return [line["m"] for line in lines[-count:]]

    def write(self, record: JobRecord, text: str) -> None:
        """Add a line of the service itself to the logs of a job."""
        path = self._store.folder(record) / "service" / "000" / "log.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"t": time.time(), "s": "out", "m": text}) + "\n")

    def _matching(self, body: dict[str, Any]) -> Iterator[Entry]:
        wanted = parse_filter(body.get("filter", ""), _FIELDS)
        projects = {name.removeprefix("projects/") for name in body.get("resourceNames", [])}
        with self._store.lock:
            records = [one for one in self._store.all(deleted=True) if not projects or _projects(one) & projects]
        skew = self._faults.skew()
        for record in records:
            for task, path in self._log_paths(record, wanted):
                lines = self._lines(path)
                entries = (_entry(record, task, path, number, line, skew) for number, line in enumerate(lines))
                yield from (entry for entry in entries if wanted.accepts(partial(_look_up, entry)))

    def _log_paths(self, record: JobRecord, wanted: Filter) -> Iterator[tuple[str, Path]]:
        if not wanted.accepts(partial(_look_up, _resource(record, UNKNOWN), missing=UNKNOWN)):
            return
        for path in sorted(self._store.folder(record).glob("*/*/log.jsonl")):
            # Vertex installs packages on the replicas, so pip's output is theirs.
            task = "workerpool0-0" if path.parent.parent.name == "install" else path.parent.parent.name
            if wanted.accepts(partial(_look_up, _resource(record, task), missing=UNKNOWN)):
                yield task, path

    def _lines(self, path: Path) -> list[dict[str, Any]]:
        with self._lock:
            return self._files.setdefault(path, _LogFile(path)).read()


class _LogFile:
    """One growing file of lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._lines: list[dict[str, Any]] = []

    def read(self) -> list[dict[str, Any]]:
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        complete = data[: data.rfind(b"\n") + 1]
        self._offset += len(complete)
        self._lines += [json.loads(line) for line in complete.splitlines()]
        return list(self._lines)


def _entry(record: JobRecord, task: str, path: Path, number: int, line: dict[str, Any], skew: float) -> Entry:
    timestamp = clock.from_seconds(line["t"] + skew)
    entry = {
        "logName": f"projects/{record.project}/logs/{task}",
        "insertId": f"{record.job_id}-{path.parent.parent.name}-{path.parent.name}-{number:09d}",
        "timestamp": timestamp,
        "receiveTimestamp": timestamp,
        "severity": _SEVERITIES[line["s"]],
        **_resource(record, task),
    }
    payload = _json_payload(line["m"])
    if payload is None:
        return {**entry, "textPayload": line["m"]}
    return {**entry, "severity": payload.pop("severity", entry["severity"]), "jsonPayload": payload}


def _json_payload(text: str) -> dict[str, Any] | None:
    if not text.startswith("{"):
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) and "message" in value else None


def _resource(record: JobRecord, task: object) -> Entry:
    labels = {"job_id": record.job_id, "project_id": record.project, "task_name": task}
    return {"resource": {"type": "ml_job", "labels": labels}}


def _projects(record: JobRecord) -> set[str]:
    """Return the project's id and number."""
    return {record.project, record.job["name"].split("/")[1]}


def _look_up(entry: Entry, field: str, missing: object = None) -> object:
    value: Any = entry
    for part in field.split("."):
        if not isinstance(value, dict) or part not in value:
            return missing
        value = value[part]
    return value


def _place(entry: Entry) -> tuple[str, str]:
    return entry["timestamp"], entry["insertId"]
