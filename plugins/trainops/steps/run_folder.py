"""A run's folder: its plan, written before anything else of the run exists."""

from __future__ import annotations

from trainops import naming
from trainops.config.plan import RunPlan
from trainops.errors import IntegrityError, WriteConflict
from trainops.gcp.storage import Storage
from trainops.settings import Settings


def write_plan(storage: Storage, settings: Settings, plan: RunPlan) -> str:
    """Keep the plan under its own fingerprint, so that a clear with another plan overwrites nothing; return its URI."""
    value = plan.to_json()
    folder = naming.run_folder(settings.work, plan.experiment, plan.run_key)
    uri = f"{folder}/plans/{naming.fingerprint(value)}.json"
    try:
        storage.write_json(uri, value, generation=0)
    except WriteConflict:
        found = storage.read_json(uri)
        if found is None or found.value != value:
            raise IntegrityError(f"{uri}: another plan stands under this plan's fingerprint") from None
    return uri


def read_plan(storage: Storage, uri: str) -> RunPlan:
    """The plan at `uri`.

    :raises IntegrityError: when there is none.
    """
    found = storage.read_json(uri)
    if found is None:
        raise IntegrityError(f"{uri}: there is no plan; the task resolve_run writes it")
    return RunPlan.from_json(found.value, uri)
