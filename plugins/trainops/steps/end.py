"""End a run: whatever happened, nothing of it is left running, queued or leased."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from trainops import naming
from trainops.errors import IntegrityError, ServiceError, TrainopsError, TransientError
from trainops.steps.day_costs import DayCostsStore
from trainops.steps.durations import remember_durations
from trainops.steps.record_store import RecordStore, records_below
from trainops.steps.run import Run
from trainops.steps.services import Services

PAUSE_SECONDS = 2.0

LISTING_PATIENCE = timedelta(seconds=60)
"""How long a list that may come back is waited for before the jobs are ended by their names."""


def end_run(
    services: Services, experiment: str, run_key: str, *, actor: str, why: str, say: Callable[[str], None],
    patience_seconds: float = 300.0,
) -> list[str]:  # fmt: skip
    """Cancel what still lives of a run, follow it until that is confirmed, and return the job keys that were ended.

    A job key that cannot be ended does not keep the others from their end.

    :raises TransientError: when a cancel is not confirmed in time; housekeeping goes on with it.
    :raises TrainopsError: when something cannot be ended: the first reason, once everything else has ended.
    """
    folder = naming.run_folder(services.settings.work, experiment, run_key)
    ended: list[str] = []
    problems: list[TrainopsError] = []
    stores = list(records_below(services.storage, folder))
    for store in stores:
        try:
            record = store.load()
            end_job_key(services, store, actor=actor, why=why, say=say, patience_seconds=patience_seconds)
        except TrainopsError as error:
            say(f"{store.uri} could not be ended: {error}")
            problems.append(error)
        else:
            ended += [record.job_key] if record.verdict is None else []
    if problems:
        raise problems[0]
    records = [store.load() for store in stores]
    try:
        DayCostsStore(services.storage, services.settings.work, services.now).settle(experiment, run_key, records)
    except IntegrityError as error:
        say(f"what the run cost is not entered: {error}")
    remember_durations(services.storage, services.settings.work, records, say)
    return ended


def end_job_key(
    services: Services, store: RecordStore, *, actor: str, why: str, say: Callable[[str], None],
    patience_seconds: float = 300.0, pause: Callable[[float], None] = time.sleep,
) -> None:  # fmt: skip
    """End one job key: order it, and reconcile until the order is confirmed.

    Where the jobs cannot be listed, those that the record names are ended by their names.

    :param pause: waits so many seconds between two looks.
    :raises TransientError: when that takes longer than `patience_seconds`.
    :raises ServiceError: when neither the jobs can be listed nor those that are known be asked for or cancelled.
    """
    run = Run(services, store.uri, actor=actor, say=say)
    record = store.load()
    if record.verdict is None:
        say(f"{record.job_key} is still open: {why}")
        run.cancel(why, generation=record.generation)
    started = services.now()
    last = "nothing was heard of it"
    while services.now() < started + timedelta(seconds=patience_seconds):
        try:
            action = run.advance()
        except ServiceError as error:
            last = str(error)
            waited = services.now() - started > min(LISTING_PATIENCE, timedelta(seconds=patience_seconds / 2))
            _go_on_by_name(run, error, waited=waited)
        else:
            if action.what == "finish":
                return
            last = action.why
        pause(PAUSE_SECONDS)
    raise TransientError(f"{record.job_key} has not ended after {patience_seconds:.0f} s: {last}")


def _go_on_by_name(run: Run, error: ServiceError, *, waited: bool) -> None:
    """Look at the jobs by their names from now on, when they cannot be listed.

    :param waited: whether a list that may come back was waited for.
    :raises ServiceError: `error`, when it is none that passes, and names do not help.
    """
    passes = isinstance(error, TransientError)
    if not run.by_name and run.list_error is error and (waited or not passes):
        run.by_name = True
        run.say(f"the jobs cannot be listed ({error}); those that the record names are ended by their names")
    elif not passes:
        raise error
