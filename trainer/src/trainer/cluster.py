"""Which replicas train together, and which of them this process is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainer.errors import UserError

_TORCHRUN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_WORKERS = {"CLUSTER_SPEC": ("workerpool0", "workerpool1"), "TF_CONFIG": ("chief", "master", "worker")}
_SERVERS = {"CLUSTER_SPEC": "workerpool2", "TF_CONFIG": "ps"}
_EVALUATORS = {"CLUSTER_SPEC": "workerpool3", "TF_CONFIG": "evaluator"}


@dataclass(frozen=True)
class Cluster:
    """Place of this process among the replicas; `host` and `port` are where they meet, at the first of them."""

    rank: int = 0
    """Number of this replica: workers come first, parameter servers after them. An evaluator has none, and says 0."""
    size: int = 1
    """Workers and parameter servers."""
    host: str = "127.0.0.1"
    port: int = 0
    local_rank: int = 0
    """Number of this replica among those of its machine."""
    local_size: int = 1
    """Replicas on this machine."""
    servers: int = 0
    """Parameter servers: the last ranks."""
    evaluator: bool = False
    """Whether this process evaluates checkpoints, and does not train."""
    watched: bool = False
    """Whether there is, or may be, an evaluator, which looks at the place where the replicas meet."""
    names: tuple[str, ...] = ()
    """What the service calls each replica, and its address, by rank."""

    @property
    def workers(self) -> int:
        """Replicas that compute gradients: the first ranks."""
        return self.size - self.servers

    def name(self, rank: int) -> str:
        """Return what to call a replica."""
        return self.names[rank] if self.names else f"rank {rank}"


def find_cluster(environment: Mapping[str, str]) -> Cluster:
    """Find the cluster in torchrun's variables, CLUSTER_SPEC or TF_CONFIG; one process when there is none.

    torchrun comes first: whoever started this very process knows best.

    :raises UserError: when a variable cannot be read, or asks for replicas that there is no use for.
    """
    if all(environment.get(name) for name in _TORCHRUN):
        return _torchrun(environment)
    for variable in _WORKERS:
        if text := environment.get(variable):
            return _replicas(variable, text)
    return Cluster()


def _torchrun(environment: Mapping[str, str]) -> Cluster:
    try:
        rank, size, port = (int(environment[name]) for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
        local_rank = int(environment.get("LOCAL_RANK", "0"))
        local_size = int(environment.get("LOCAL_WORLD_SIZE", "1"))
    except ValueError as error:
        raise UserError(f"RANK, WORLD_SIZE, MASTER_PORT, LOCAL_RANK, LOCAL_WORLD_SIZE: {error}") from None
    return Cluster(rank, size, environment["MASTER_ADDR"], port, local_rank, local_size)


def _replicas(variable: str, text: str) -> Cluster:
    pools, task = _read(variable, text)
    _check_pools(variable, pools)
    training = (*_WORKERS[variable], _SERVERS[variable])
    order = [(pool, index) for pool in training for index in range(len(pools.get(pool, [])))]
    addresses = [_address(variable, pools[pool][index]) for pool, index in order]
    own = (str(task.get("type", "")), int(task.get("index", 0)))
    evaluator = own == (_EVALUATORS[variable], 0)
    if not order or (not evaluator and own not in order):
        raise UserError(f"{variable}: task {own[0]!r} number {own[1]} is not in the cluster {pools}")
    rank = 0 if evaluator else order.index(own)
    beside = [] if evaluator else [at for at, address in enumerate(addresses) if address[0] == addresses[rank][0]]
    # The first replica's own port: the service keeps it open between replicas, and nothing else listens there.
    return Cluster(
        rank,
        len(order),
        *addresses[0],
        local_rank=beside.index(rank) if beside else 0,
        local_size=max(1, len(beside)),
        servers=len(pools.get(_SERVERS[variable], [])),
        evaluator=evaluator,
        # TensorFlow leaves evaluators out of the cluster.
        watched=variable == "TF_CONFIG" or bool(pools.get(_EVALUATORS[variable])),
        names=tuple(f"{pool}-{index} ({pools[pool][index]})" for pool, index in order),
    )


def _read(variable: str, text: str) -> tuple[dict[str, list[str]], dict[str, Any]]:
    try:
        data = json.loads(text)
        pools = {str(name): list(replicas) for name, replicas in data["cluster"].items()}
        if variable == "CLUSTER_SPEC" and _reduces(data.get("job")):
            pools.pop(_SERVERS[variable], None)
        return pools, dict(data["task"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f'{variable}: expected {{"cluster": {{...}}, "task": {{"type": ..., "index": ...}}}}: {error!r}'
        ) from None


def _reduces(job: Any) -> bool:
    """Whether Google's Reduction Server runs in place of parameter servers: it helps nccl, and never meets anybody."""
    pools = job.get("workerPoolSpecs", []) if isinstance(job, Mapping) else []
    return len(pools) > 2 and "/training/reductionserver" in json.dumps(pools[2])


def _check_pools(variable: str, pools: Mapping[str, list[str]]) -> None:
    evaluators = _EVALUATORS[variable]
    known = (*_WORKERS[variable], _SERVERS[variable], evaluators)
    for pool, replicas in pools.items():
        if replicas and pool not in known:
            raise UserError(f"{variable}: {pool}: no such pool; allowed: {', '.join(known)}")
    if len(pools.get(evaluators, [])) > 1:
        raise UserError(
            f"{variable}: {evaluators}: got {len(pools[evaluators])} evaluators; allowed: 1, which evaluates every "
            "checkpoint; set their count to 1"
        )
    if not any(pools.get(pool) for pool in _WORKERS[variable]):
        raise UserError(f"{variable}: {', '.join(_WORKERS[variable])}: no replica that trains; add a master")


def _address(variable: str, address: str) -> tuple[str, int]:
    host, _, port = str(address).rpartition(":")
    if not host or not port.isdigit():
        raise UserError(f"{variable}: expected host:port, got {address!r}")
    return host, int(port)
