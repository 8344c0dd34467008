"""The replicas of one job: joining them, and the few things that they tell each other."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from trainer.cluster import Cluster
from trainer.console import say
from trainer.errors import TrainerError
from trainer.failures import out_of_memory
from trainer.heartbeat import VERDICT_KEY, Heartbeats, heartbeat_key

MEETING_TIMEOUT = timedelta(minutes=15)
"""How long replicas wait for each other to start: machines of one job may come minutes apart."""
WORD_TIMEOUT = timedelta(minutes=30)
"""How long a replica waits for another within training, e.g. while the first one saves a checkpoint."""

_LOST = re.compile(r"gloo|nccl|peer|connection|remote", re.IGNORECASE)
"""Marks the errors of backends that say so in plain RuntimeErrors only."""


@dataclass(frozen=True)
class Replicas:
    """This process among the replicas. With one replica everything here is free."""

    rank: int
    size: int
    device: torch.device
    servers: int = 0
    """Parameter servers: the last ranks."""
    group: Any = None
    """The workers alone, where there are servers as well."""
    heartbeats: Heartbeats | None = None

    @property
    def first(self) -> bool:
        """Whether this is the replica that writes and prints."""
        return self.rank == 0

    @property
    def workers(self) -> int:
        """Replicas that compute gradients: the first ranks."""
        return self.size - self.servers

    @property
    def serves(self) -> bool:
        """Whether this replica is a parameter server."""
        return self.rank >= self.workers

    @contextmanager
    def exchanging(self) -> Generator[None, None, None]:
        """Do something that needs the other replicas; raise TrainerError when one of them is gone."""
        try:
            yield
        except RuntimeError as error:
            lost_somebody = isinstance(error, dist.DistError) or _LOST.search(str(error))
            if self.size == 1 or not lost_somebody or out_of_memory(error):
                raise
            lost = self.heartbeats.find_lost() if self.heartbeats else None
            first_line = str(error).splitlines()[0]
            raise TrainerError(f"a replica was lost: {lost or 'which one is not known'} ({first_line})") from error

    def sum(self, values: list[float], *, workers_only: bool = False) -> list[float]:
        """Add up each value over the replicas, or over the workers; all of them get the same sums."""
        if (self.workers if workers_only else self.size) == 1:
            return values
        # gloo, which servers need, is at home on CPUs.
        device = torch.device("cpu") if self.servers else self.device
        tensor = torch.tensor(values, dtype=torch.float64, device=device)
        with self.exchanging():
            dist.all_reduce(tensor, group=self.group if workers_only else None)
        return [float(value) for value in tensor.tolist()]

    def gather(self, value: Any) -> list[Any]:
        """Collect one value of every replica, by rank."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        with self.exchanging():
            dist.all_gather_object(values, value)
        return values


@contextmanager
def joined(cluster: Cluster) -> Generator[Replicas, None, None]:
    """Choose the device, share the cores of the machine, meet the other replicas, and leave them at the end.

    :raises TrainerError: when the others do not come within MEETING_TIMEOUT.
    """
    device = _device(cluster)
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, _cores() // cluster.local_size))
    if cluster.size == 1 and not cluster.watched:
        yield Replicas(0, 1, device)
        return
    store = _meet(cluster, device)
    group = dist.new_group(list(range(cluster.workers))) if cluster.servers else None
    heartbeats = Heartbeats(cluster)
    heartbeats.begin()
    failed = True
    try:
        yield Replicas(cluster.rank, cluster.size, device, cluster.servers, group, heartbeats)
        failed = False
    finally:
        heartbeats.leave(failed=failed)
        if dist.is_initialized():
            dist.destroy_process_group()
        # Until here: with the first replica's the store itself ends.
        del store


def _device(cluster: Cluster) -> torch.device:
    if not torch.cuda.is_available() or cluster.rank >= cluster.workers:
        return torch.device("cpu")
    index = cluster.local_rank % torch.cuda.device_count()
    if torch.cuda.device_count() > cluster.local_size:
        say(
            f"warning: {torch.cuda.device_count()} GPUs here and {cluster.local_size} replica: one process uses one "
            "GPU; start the trainer with torchrun to use all of them"
        )
    torch.cuda.set_device(index)
    return torch.device("cuda", index)


def _cores() -> int:
    # The cores this process may use, which in a container are fewer than the machine has.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _meet(cluster: Cluster, device: torch.device) -> Any:
    """Open the store, and in it meet the others; return it."""
    listener = _loopback_listener(cluster)
    try:
        store = dist.TCPStore(  # type: ignore[attr-defined]  # public, but torch does not export it to type checkers
            cluster.host,
            cluster.port,
            world_size=cluster.size,
            is_master=cluster.rank == 0,
            timeout=MEETING_TIMEOUT,
            master_listen_fd=listener.detach() if listener else None,
        )
        # Before they meet, so that nobody looks for a word that was never there.
        store.set(heartbeat_key(cluster.rank), "")
        if cluster.rank == 0:
            store.set(VERDICT_KEY, "")
        if cluster.size > 1:
            dist.init_process_group(
                # Servers have no GPU: between them and the workers all travels through the CPU.
                "nccl" if device.type == "cuda" and not cluster.servers else "gloo",
                store=store,
                rank=cluster.rank,
                world_size=cluster.size,
                timeout=WORD_TIMEOUT,
            )
        return store
    except (dist.DistError, RuntimeError) as error:
        first_line = str(error).splitlines()[0]
        raise TrainerError(
            f"{cluster.name(cluster.rank)}, replica {cluster.rank} of {cluster.size}, could not meet the others at "
            f"{cluster.host}:{cluster.port}: {first_line}"
        ) from error


def _loopback_listener(cluster: Cluster) -> socket.socket | None:
    """On one machine, keep to loopback: torch listens on every interface unless it is given a socket."""
    try:
        loopback = cluster.host == "localhost" or ipaddress.ip_address(cluster.host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        return None
    names = [name for _, name in socket.if_nameindex() if name in {"lo", "lo0"}]
    os.environ.setdefault("GLOO_SOCKET_IFNAME", names[0] if names else "lo")
    return socket.create_server((cluster.host, cluster.port), backlog=128) if cluster.rank == 0 else None
