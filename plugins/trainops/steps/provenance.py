"""The walk from a promoted version to all that it was made of: files of rows, package, config, jobs, cost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from trainops import naming
from trainops.config.plan import RunPlan
from trainops.errors import ConfigError
from trainops.gcp.storage import Storage
from trainops.jobspec.cost import job_cost
from trainops.policy.record import Attempt, Record
from trainops.policy.spending import ran_seconds
from trainops.settings import Settings
from trainops.steps.channels import list_channels
from trainops.steps.model_versions import VersionManifest, list_versions
from trainops.steps.record_store import records_below
from trainops.steps.run_folder import read_plan

SECONDS_PER_HOUR = 3600


def provenance(storage: Storage, settings: Settings, model: str, version: str | None) -> dict[str, Any]:
    """Return what a version was made of, as one JSON object. What is gone by now is None, and named in `gone`.

    :param version: None for the one in production.
    :raises ConfigError: no such model or version, or nothing is in production.
    """
    manifest = _version(storage, settings, model, version)
    plan = _plan(storage, manifest)
    jobs = list(_jobs(storage, settings, manifest))
    data = _data(storage, settings, manifest, plan)
    gone = {"plan": plan, "data": data, "jobs": jobs or None}
    channels = dict(list_channels(storage, settings.models, model))
    return {
        "model": model,
        "version": manifest.version,
        "channels": [name for name, at in channels.items() if at.version == manifest.version],
        "eval_loss": manifest.eval_loss,
        "data_date": manifest.data_date.isoformat(),
        "run": {"run_key": manifest.run_key, "experiment": manifest.experiment, "generation": manifest.generation,
                "plan": manifest.lineage.plan, "owner": plan and plan.owner, "conf": plan and plan.conf},
        "data": data,
        "tokens": manifest.lineage.tokens,
        "base_model": manifest.lineage.base_model,
        "packages": list(manifest.lineage.packages),
        "image": manifest.lineage.image,
        "jobs": jobs,
        "cost": _total(jobs),
        "gone": [name for name, found in gone.items() if found is None],
    }  # fmt: skip


def _version(storage: Storage, settings: Settings, model: str, version: str | None) -> VersionManifest:
    known = storage.folders(settings.models)
    if model not in known:
        raise ConfigError("no such model", key="MODEL", value=model, allowed=known)
    wanted = version or dict(list_channels(storage, settings.models, model)).get("production")
    name = wanted if isinstance(wanted, str) else wanted and wanted.version
    if name is None:
        raise ConfigError(
            "nothing is in production", key="MODEL", value=model, next_step="name a version with --version"
        )
    versions = {item.version: item for item in list_versions(storage, settings.models, model)}
    if name not in versions:
        raise ConfigError("no such version", key="--version", value=name, allowed=versions)
    return versions[name]


def _plan(storage: Storage, manifest: VersionManifest) -> RunPlan | None:
    """The plan of the version's run; None when it is gone."""
    return read_plan(storage, manifest.lineage.plan) if storage.exists(manifest.lineage.plan) else None


def _data(
    storage: Storage, settings: Settings, manifest: VersionManifest, plan: RunPlan | None
) -> dict[str, Any] | None:
    """The staged dataset and the files that its rows came from; None when nobody knows any more."""
    sha16 = manifest.lineage.dataset_sha16
    if plan is None or sha16 is None:
        return None
    folder = naming.dataset_folder(settings.work, plan.dataset.name, sha16)
    staged = storage.read_json(f"{folder}/manifest.json")
    if staged is None:
        return None
    told = {key: staged.value.get(key) for key in ("files", "documents", "bytes")}
    sources = list(_sources(storage, folder, staged.value.get("sources")))
    return {"dataset": plan.dataset.name, "uri": folder, **told, "sources": sources}


def _sources(storage: Storage, folder: str, name: str | None) -> Iterator[dict[str, Any]]:
    """The files that were read; none of a dataset that was staged before they were noted."""
    found = storage.read_bytes(f"{folder}/{name}") if name else None
    for line in found.data.splitlines() if found else []:
        yield json.loads(line)


def _jobs(storage: Storage, settings: Settings, manifest: VersionManifest) -> Iterator[dict[str, Any]]:
    folder = naming.run_folder(settings.work, manifest.experiment, manifest.run_key)
    for store in records_below(storage, folder):
        record = store.load()
        yield from (_job(record, attempt) for attempt in record.attempts if attempt.job_name)


def _job(record: Record, attempt: Attempt) -> dict[str, Any]:
    """One job: how long its machines ran, and the price of that."""
    hours = None
    if attempt.bound_at and attempt.ended_at:
        hours = Decimal(str(ran_seconds(attempt, attempt.ended_at))) / SECONDS_PER_HOUR
    machines = record.candidates[attempt.candidate]
    cost = job_cost(machines.spec, machines.region)
    usd = cost.at_most(hours) if hours is not None else None
    return {
        "task": record.owner.task_id,
        "attempt": attempt.number,
        "job_name": attempt.job_name,
        "machines": str(machines),
        "verdict": attempt.verdict.value if attempt.verdict else None,
        "hours": None if hours is None else round(float(hours), 4),
        "usd": None if usd is None else round(float(usd), 4),
        "no_price": [*cost.unknown, *([] if hours is not None else ["its end is not known"])],
    }


def _total(jobs: list[dict[str, Any]]) -> dict[str, Any]:
    """What all jobs cost together, by the list of prices; what has no price is named."""
    unpriced = [job["job_name"] for job in jobs if job["usd"] is None]
    return {"usd": round(sum(job["usd"] or 0 for job in jobs), 4), "not_counted": unpriced}
