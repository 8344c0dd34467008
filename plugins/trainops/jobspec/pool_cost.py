"""What one worker pool costs per hour: its machines, their accelerators and their boot disks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from trainops.jobspec.disks import disk_types
from trainops.jobspec.tables import prices
from trainops.jobspec.tables.machines import CLOUD_TPU_TYPES, GPU_ALWAYS

Basis = Literal["on_demand", "spot"]
"""Which of the two prices is paid."""


@dataclass(frozen=True)
class Rate:
    """US dollars per hour; None where the price list has no price.

    :param on_demand: machines that are kept until the job ends.
    :param spot: machines that Google may take back.
    """

    on_demand: Decimal | None
    spot: Decimal | None

    def __add__(self, other: Rate) -> Rate:
        return Rate(_plus(self.on_demand, other.on_demand), _plus(self.spot, other.spot))

    def __mul__(self, count: int) -> Rate:
        return Rate(_times(self.on_demand, count), _times(self.spot, count))

    def on(self, basis: Basis | None) -> Decimal | None:
        """Return the price by that basis; None when the basis or the price is unknown."""
        return None if basis is None else self.spot if basis == "spot" else self.on_demand


FREE = Rate(Decimal(0), Decimal(0))
UNKNOWN = Rate(None, None)


@dataclass(frozen=True)
class PoolCost:
    """What one worker pool costs.

    :param index: position in workerPoolSpecs.
    :param machine: machine type.
    :param accelerator: one replica's accelerators, or the topology of a TPU slice; empty without.
    :param rate: all replicas together, with their boot disks.
    :param unpriced: what the price list lacks; empty when the rate is known.
    :param not_counted: what is left out of the rate.
    :param doubts: what is uncertain about the rate.
    """

    index: int
    replicas: int
    machine: str
    accelerator: str
    rate: Rate
    unpriced: str = ""
    not_counted: str = ""
    doubts: tuple[str, ...] = ()


def pool_cost(index: int, pool: Mapping[str, Any]) -> PoolCost:
    """Return the cost of a WorkerPoolSpec in REST JSON with replicas in it."""
    machine = pool["machineSpec"]
    name = machine["machineType"]
    replicas = int(pool["replicaCount"])
    rate, unpriced = _machine_rate(machine)
    disk, not_counted = _disk_rate(pool.get("diskSpec", {}), name)
    return PoolCost(
        index=index,
        replicas=replicas,
        machine=name,
        accelerator=_accelerator(machine),
        rate=(rate + disk) * replicas,
        unpriced=unpriced,
        not_counted=not_counted,
        doubts=() if unpriced else _doubts(name, machine.get("acceleratorType", "")),
    )


def _doubts(machine: str, accelerator: str) -> tuple[str, ...]:
    undated = accelerator in prices.GPU_PRICES or accelerator in CLOUD_TPU_TYPES
    known = [text for start, text in prices.DOUBTS.items() if machine.startswith(start)]
    return (*([prices.UNDATED] if undated else []), *known)


def _accelerator(machine: Mapping[str, Any]) -> str:
    if "acceleratorType" in machine:
        return f"{machine['acceleratorCount']} x {machine['acceleratorType']}"
    return str(machine.get("tpuTopology", ""))


def _machine_rate(machine: Mapping[str, Any]) -> tuple[Rate, str]:
    """Return the rate of one machine with its accelerators, and what the list lacks when it is unknown."""
    name, kind = machine["machineType"], machine.get("acceleratorType")
    count = int(machine.get("acceleratorCount", 0))
    if kind in CLOUD_TPU_TYPES:
        whole = prices.TPU_PRICES.get((kind, count))
        return (UNKNOWN, f"no price of {count} cores of {kind}") if whole is None else (_vertex(*whole), "")
    own = prices.MACHINE_PRICES.get(name)
    if own is None:
        return UNKNOWN, f"no price of {name}"
    if kind is None or name in GPU_ALWAYS:
        return _vertex(*own), ""
    one = prices.GPU_PRICES.get(kind)
    return (UNKNOWN, f"no price of {kind}") if one is None else (_vertex(*own) + _vertex(*one) * count, "")


def _disk_rate(disk: Mapping[str, Any], machine: str) -> tuple[Rate, str]:
    """Return the rate of one boot disk, and what is not counted when the list lacks it."""
    kind = disk.get("bootDiskType", disk_types(machine)[0])
    size = int(disk.get("bootDiskSizeGb", prices.DEFAULT_DISK_GB))
    month = prices.DISK_PRICES.get(kind)
    if month is None:
        return FREE, f"boot disks of type {kind}"
    hour = Decimal(month) * size / prices.HOURS_PER_MONTH * (1 + prices.MANAGEMENT_FEE)
    return Rate(hour, hour), ""


def _vertex(on_demand: str, spot: str) -> Rate:
    """Return what Vertex AI takes for what has these prices on Compute Engine."""
    fee = Decimal(on_demand) * prices.MANAGEMENT_FEE
    return Rate(Decimal(on_demand) + fee, Decimal(spot) + fee)


def _plus(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    return None if one is None or other is None else one + other


def _times(price: Decimal | None, count: int) -> Decimal | None:
    return None if price is None else price * count
