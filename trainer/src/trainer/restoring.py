"""Going on from a checkpoint, whatever cluster shape wrote it."""

from __future__ import annotations

from trainer.checkpoints import Checkpoints, Record
from trainer.replicas import Replicas
from trainer.state import TrainingState, restore_random
from trainer.strategy import Strategy


def restore(checkpoints: Checkpoints, strategy: Strategy, replicas: Replicas, state: TrainingState) -> int | None:
    """Restore the newest checkpoint that is whole, and return its step; None when there is none.

    The replicas look at the files together, a share each. Newer checkpoints that are corrupt are told of and deleted.

    :raises UserError: when it is of another model.
    """
    # The first replica decides, so that all go on from the same step.
    steps: list[int] = replicas.gather(checkpoints.steps() if replicas.first else None)[0]
    for step in reversed(steps):
        record, problem = checkpoints.record(step)
        if problem is None:
            checkpoints.check_model(record)
            problem = checkpoints.problem(step, record, slice(replicas.rank, None, replicas.size))
        problems = [found for found in replicas.gather(problem) if found]
        if not problems:
            checkpoints.load(step, record, strategy.pieces())
            _go_on(record, strategy, replicas, state)
            return step
        if replicas.first:
            checkpoints.say_corrupt(step, problems[0])
    return None


def _go_on(record: Record, strategy: Strategy, replicas: Replicas, state: TrainingState) -> None:
    strategy.restored(record["step"], record["counts"])
    state.restore(record)
    # A replica that the run did not have before keeps the state that its seed gave it.
    if replicas.rank < len(record["random"]):
        restore_random(record["random"][replicas.rank], replicas.device)
