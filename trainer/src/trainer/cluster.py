"""Which replicas train together, and which of them this process is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainer.errors import UserError

_TORCHRUN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_WORKERS = {"CLUSTER_SPEC": ("workerpool0", "workerpool1"), "TF_CONFIG": ("chief", "master", "worker")}


@dataclass(frozen=True)
class Cluster:
    """Place of this process among the replicas; `host` and `port` are where they meet, at the first of them."""

    rank: int = 0
    size: int = 1
    host: str = "127.0.0.1"
    port: int = 0
    local_rank: int = 0
    """Number of this replica among those of its machine."""
    local_size: int = 1
    """Replicas on this machine."""


def find_cluster(environment: Mapping[str, str]) -> Cluster:
    """Find the cluster in torchrun's variables, CLUSTER_SPEC or TF_CONFIG; one process when there is none.

    torchrun comes first: whoever started this very process knows best.

    :raises UserError: when a variable cannot be read, or asks for parameter servers or evaluators.
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
    workers = _WORKERS[variable]
    for pool, replicas in pools.items():
        if replicas and pool not in workers:
            raise UserError(_not_a_worker(variable, pool))
    order = [(pool, index) for pool in workers for index in range(len(pools.get(pool, [])))]
    own = (str(task.get("type", "")), int(task.get("index", 0)))
    if own not in order:
        raise UserError(f"{variable}: task {own[0]!r} number {own[1]} is not in the cluster {pools}")
    addresses = [_address(variable, pools[pool][index]) for pool, index in order]
    rank = order.index(own)
    beside = [number for number, address in enumerate(addresses) if address[0] == addresses[rank][0]]
    # The first replica's own port: the service keeps it open between replicas, and nothing else listens there.
    return Cluster(rank, len(order), *addresses[0], local_rank=beside.index(rank), local_size=len(beside))


def _read(variable: str, text: str) -> tuple[dict[str, list[str]], dict[str, Any]]:
    try:
        data = json.loads(text)
        pools = {str(name): list(replicas) for name, replicas in data["cluster"].items()}
        return pools, dict(data["task"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f'{variable}: expected {{"cluster": {{...}}, "task": {{"type": ..., "index": ...}}}}: {error!r}'
        ) from None


def _not_a_worker(variable: str, pool: str) -> str:
    what = {"workerpool2": "parameter servers", "ps": "parameter servers", "workerpool3": "evaluators"}
    return (
        f"{variable}: {pool}: this trainer has no use for {what.get(pool, pool)}: its workers hold the whole model and "
        f"evaluate it themselves; set the count of {what.get(pool, pool)} to 0 and add workers instead"
    )


def _address(variable: str, address: str) -> tuple[str, int]:
    host, _, port = str(address).rpartition(":")
    if not host or not port.isdigit():
        raise UserError(f"{variable}: expected host:port, got {address!r}")
    return host, int(port)
