"""Which replica this process is, as CLUSTER_SPEC and TF_CONFIG say; they must agree."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

POOLS = {"workerpool0": "chief", "workerpool1": "worker", "workerpool2": "ps"}
"""Worker pool of CLUSTER_SPEC -> role of TF_CONFIG."""


@dataclass(frozen=True)
class Replica:
    """A process of the job, and where all of them are."""

    role: str
    """chief, worker or ps (a parameter server)."""
    index: int
    cluster: dict[str, list[str]]
    """Addresses (host:port) of each role, by index."""

    @property
    def members(self) -> list[tuple[str, int]]:
        """Role and index of every replica, in the order of ranks: the chief is 0."""
        return [(role, index) for role in POOLS.values() for index in range(len(self.cluster.get(role, [])))]

    @property
    def rank(self) -> int:
        """Number of this replica among all."""
        return self.members.index((self.role, self.index))

    @property
    def servers(self) -> list[int]:
        """Ranks of the parameter servers."""
        return [rank for rank, (role, _) in enumerate(self.members) if role == "ps"]

    @property
    def trains(self) -> bool:
        """Whether it computes gradients."""
        return self.role != "ps"

    def address(self, member: tuple[str, int]) -> tuple[str, int]:
        """Return host and port of a replica."""
        role, index = member
        host, _, port = self.cluster[role][index].rpartition(":")
        return host, int(port)

    def __str__(self) -> str:
        return f"{self.role} {self.index}"


def find_replica(environment: Mapping[str, str]) -> Replica:
    """Read both variables; SystemExit when they disagree on role, index, or any address."""
    spec = _read(environment["CLUSTER_SPEC"])
    renamed = Replica(
        POOLS[spec.role], spec.index, {POOLS[pool]: addresses for pool, addresses in spec.cluster.items()}
    )
    config = _read(environment["TF_CONFIG"])
    if renamed != config:
        raise SystemExit(f"CLUSTER_SPEC says {renamed!r}, and TF_CONFIG {config!r}")
    return config


def _read(text: str) -> Replica:
    value = json.loads(text)
    return Replica(value["task"]["type"], int(value["task"]["index"]), value["cluster"])
