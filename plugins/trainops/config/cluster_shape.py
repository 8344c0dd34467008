"""Whether a job's replicas can train as they are told; the trainer would refuse it only once its GPUs are paid for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainops.config.conf import CONF, RunConf
from trainops.config.experiment import Training
from trainops.errors import ConfigError

SERVERS = 2
"""Place of the parameter servers among the worker pools; the master and the workers stand before them."""


def check_shape(training: Training, run: RunConf, job: Mapping[str, Any], source: str) -> None:
    """Compare strategy and batch with the worker pools of a CustomJob.

    :param source: the experiment's file.
    :raises ConfigError: these replicas cannot share the work so, or there are more workers than sequences in a step.
    """
    pools = job["jobSpec"]["workerPoolSpecs"]
    counts = [int(pool.get("replicaCount", 0)) for pool in pools] + [0] * SERVERS
    workers, servers = sum(counts[:SERVERS]), counts[SERVERS]
    if servers:
        allowed = ["auto", "parameter_server"]
    else:
        allowed = ["auto", "ddp", "fsdp"] if workers > 1 else ["auto", "single"]
    if training.strategy not in {None, *allowed}:
        raise ConfigError(
            f"the job has {_counted(workers, 'worker')} (the master is one) and "
            f"{_counted(servers, 'parameter server')}",
            source=source,
            key="training.strategy",
            value=training.strategy,
            allowed=allowed,
            next_step="change it, or workerCount and parameterServerCount of training_input",
        )
    batch = training.batch_size if run.batch_size is None else run.batch_size
    if batch < workers:
        raise ConfigError(
            f"each of the {workers} workers (the master is one) needs a sequence",
            source=source if run.batch_size is None else CONF,
            key="training.batch_size" if run.batch_size is None else "batch_size",
            value=batch,
            next_step=f"take {workers} or more",
        )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
