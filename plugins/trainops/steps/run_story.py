"""What the objects of a run tell about it: for `trainops runs`, and for the summary of the demo."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from trainops import naming
from trainops.errors import ConfigError
from trainops.gcp.storage import Storage
from trainops.policy.record import Record
from trainops.policy.spending import gpu_hours, spent_usd
from trainops.settings import Settings
from trainops.steps.record_store import records_below


def run_keys(storage: Storage, settings: Settings) -> Iterator[tuple[str, str]]:
    """Experiment and run key of every run in the bucket."""
    root = f"{settings.work}/runs"
    for experiment in storage.folders(root):
        for run_key in storage.folders(f"{root}/{experiment}"):
            yield experiment, run_key


def find_run(storage: Storage, settings: Settings, run_key: str) -> str:
    """The run's folder.

    :raises ConfigError: when there is no such run.
    """
    known = {key: experiment for experiment, key in run_keys(storage, settings)}
    if run_key not in known:
        raise ConfigError(
            "no such run", source="command line", key="RUN_KEY", value=run_key, allowed=sorted(known),
            next_step="list them with `trainops runs`",
        )  # fmt: skip
    return naming.run_folder(settings.work, known[run_key], run_key)


def story(storage: Storage, folder: str) -> dict[str, Any]:
    """Everything about a run, as one JSON object: state, jobs, result, decision, promoted model."""
    records = [store.load() for store in records_below(storage, folder)]
    generation = max((record.generation for record in records), default=0)
    decision = _value(storage, f"{folder}/decision.json")
    return {
        "run_key": folder.rsplit("/", 1)[-1],
        "experiment": folder.rsplit("/", 2)[-2],
        "state": state(records),
        "generation": generation,
        "jobs": [_job(record) for record in records],
        "result": _result(storage, records),
        "decision": decision,
        "promoted": _promoted(storage, folder),
        "story": sorted((line for record in records for line in _lines(record)), key=lambda line: line["at"]),
    }


def state(records: list[Record]) -> str:
    """One word on the jobs of a run: running, succeeded, or how the last one to fail ended."""
    if not records:
        return "no job yet"
    if any(record.verdict is None for record in records):
        return "running"
    failed = [record.verdict for record in records if record.verdict is not None and record.verdict != "succeeded"]
    return str(failed[-1].value) if failed else "succeeded"


def _job(record: Record) -> dict[str, Any]:
    attempt, now = record.attempt, datetime.now(UTC)
    return {
        "task": record.owner.task_id,
        "job_key": record.job_key,
        "job_name": attempt.job_name if attempt else None,
        "state": record.verdict.value if record.verdict else "open",
        "attempts": len(record.attempts),
        "generation": record.generation,
        "accelerators": record.machines.accelerators,
        "region": record.machines.region,
        "gpu_hours": round(gpu_hours(record, now), 4),
        "usd": round(spent_usd(record, now), 4),
        "message": record.message,
    }


def _lines(record: Record) -> list[dict[str, Any]]:
    past = [line for earlier in record.earlier for line in earlier.get("story", [])]
    now = [line.model_dump(mode="json") for line in record.story]
    return [{**line, "task": record.owner.task_id} for line in (*past, *now)]


def _result(storage: Storage, records: list[Record]) -> Any:
    for record in records:
        found = _value(storage, f"{record.folder}/result.json")
        if found is not None:
            return found
    return None


def _promoted(storage: Storage, folder: str) -> Any:
    found = _value(storage, f"{folder}/promoted.json")
    return found["uri"] if isinstance(found, dict) and found.get("promoted") else None


def _value(storage: Storage, uri: str) -> Any:
    found = storage.read_json(uri)
    return None if found is None else found.value
