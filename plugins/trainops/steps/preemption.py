"""Follows jobs that were asked to leave to their end, on behalf of whoever owns them: their GPUs are waited for."""

from __future__ import annotations

from trainops.errors import IntegrityError, TransientError
from trainops.steps.gpu_queue import Ledger
from trainops.steps.run import Run, Say
from trainops.steps.services import Services


def follow_leaving(services: Services, ledger: Ledger, *, actor: str, say: Say) -> list[str]:
    """Look at each job that was asked to leave; return the job keys whose GPUs came free.

    A job that has not left when its grace is over is cancelled. Its owner alone submits its next attempt.
    """
    freed = []
    for key, entry in ledger.leaving().items():
        run = Run(services, entry.record, actor=actor, say=say)
        run.submits = False
        try:
            run.advance()
        except TransientError:
            continue  # the next look is a second away
        except IntegrityError as error:
            say(f"{key}: {error}")
            continue
        if run.observed is None or not run.observed.live:
            freed.append(key)
    return freed
