"""End a run: whatever happened, nothing of it is left running, queued or leased."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from trainops import naming
from trainops.errors import TransientError
from trainops.steps.record_store import RecordStore, records_below
from trainops.steps.run import Run
from trainops.steps.services import Services

PAUSE_SECONDS = 2.0


def end_run(
    services: Services, experiment: str, run_key: str, *, actor: str, why: str, say: Callable[[str], None],
    patience_seconds: float = 300.0,
) -> list[str]:  # fmt: skip
    """Cancel what still lives of a run, follow it until that is confirmed, and return the job keys that were ended.

    :raises TransientError: when a cancel is not confirmed in time; housekeeping goes on with it.
    """
    folder = naming.run_folder(services.settings.work, experiment, run_key)
    ended: list[str] = []
    for store in records_below(services.storage, folder):
        record = store.load()
        if record.verdict is None:
            ended.append(record.job_key)
        end_job_key(services, store, actor=actor, why=why, say=say, patience_seconds=patience_seconds)
    return ended


def end_job_key(
    services: Services, store: RecordStore, *, actor: str, why: str, say: Callable[[str], None],
    patience_seconds: float = 300.0, pause: Callable[[float], None] = time.sleep,
) -> None:  # fmt: skip
    """End one job key: order it, and reconcile until the order is confirmed.

    :param pause: waits so many seconds between two looks.
    :raises TransientError: when that takes longer than `patience_seconds`.
    """
    run = Run(services, store.uri, actor=actor, say=say)
    record = store.load()
    if record.verdict is None:
        say(f"{record.job_key} is still open: {why}")
        run.cancel(why, generation=record.generation)
    deadline = services.now() + timedelta(seconds=patience_seconds)
    last = "nothing was heard of it"
    while services.now() < deadline:
        try:
            action = run.advance()
        except TransientError as error:
            last = str(error)
        else:
            if action.what == "finish":
                return
            last = action.why
        pause(PAUSE_SECONDS)
    raise TransientError(f"{record.job_key} has not ended after {patience_seconds:.0f} s: {last}")
