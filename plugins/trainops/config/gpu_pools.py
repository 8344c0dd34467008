"""GPU pools: how many accelerators of a type, a region and a provisioning model all runs together may hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, PrivateAttr, model_validator

from trainops.config.model import Config
from trainops.config.queue_policy import QueuePolicy
from trainops.errors import ConfigError
from trainops.naming import pool_gpus, pool_name
from trainops.settings import configs_folder
from trainops.validation import Refused, read_yaml, validated

Provisioning = Literal["standard", "spot", "flex_start"]
"""How Google provides the machines: on demand, from spare capacity that may be taken back, or queued by Google."""

FILE = "gpu_pools.yaml"

CPU = "CPU"
"""Accelerator of a pool of machines without any: its quota counts machines. Without such a pool they do not queue."""


class GpuPool(Config):
    """One quota."""

    accelerator: str = Field(
        min_length=1, description="Accelerator type in Vertex AI's spelling; CPU: machines without any."
    )
    region: str = Field(pattern=r"^[a-z]+-[a-z]+[0-9]+$", description="Region that the quota is for.")
    provisioning: Provisioning = Field("standard", description="Provisioning model that the quota is for.")
    quota: int = Field(ge=0, description="Accelerators, or machines of a CPU pool, held at once; 0 closes the pool.")

    @property
    def name(self) -> str:
        """Name of the pool, such as `NVIDIA_TESLA_T4/us-central1/standard`."""
        return pool_name(self.accelerator, self.region, self.provisioning)


class OwnerCap(Config):
    """What an owner's runs may cost in a day."""

    owner: str = Field(min_length=1, description="Owner of experiments, as their files name it; *: every other.")
    usd_per_day: float = Field(ge=0, description="US dollars by the price list, of all runs that start in a UTC day.")


class GpuPools(Config):
    """The file `gpu_pools.yaml`."""

    pools: list[GpuPool] = Field(min_length=1, description="All pools; no two of the same name.")
    caps: list[OwnerCap] = Field(default_factory=list, description="What owners may spend; empty: no caps.")
    policy: QueuePolicy = Field(default_factory=QueuePolicy, description="Who goes first, and who makes room.")
    _source: str = PrivateAttr(FILE)

    @model_validator(mode="after")
    def _each_quota_once(self) -> GpuPools:
        names = [pool.name for pool in self.pools]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise Refused(
                    f"the same pool as pools.{names.index(name)}",
                    key=f"pools.{index}",
                    value=name,
                    next_step="keep one of the two: a quota must not be counted twice",
                )
        return self

    @model_validator(mode="after")
    def _each_owner_once(self) -> GpuPools:
        owners = [cap.owner for cap in self.caps]
        for index, owner in enumerate(owners):
            if owner in owners[:index]:
                first = owners.index(owner)
                raise Refused(f"the same owner as caps.{first}", key=f"caps.{index}.owner", value=owner)
        return self

    def cap_of(self, owner: str) -> OwnerCap | None:
        """Return the cap of an owner, its own before that of everybody; None when there is none."""
        caps = {cap.owner: cap for cap in self.caps}
        return caps.get(owner) or caps.get("*")

    @property
    def source(self) -> str:
        """The file that the pools were read from."""
        return self._source

    def quotas(self) -> dict[str, int]:
        """Return the quota of every pool by its name."""
        return {pool.name: pool.quota for pool in self.pools}

    def ask(self, accelerators: Mapping[str, int], region: str, provisioning: str = "standard") -> dict[str, int]:
        """Return what a job takes of which pool: pool name to accelerators.

        :param accelerators: accelerator type to the number that all replicas of the job hold together.
        :raises ConfigError: there is no such pool, or the job can never fit into its quota.
        """
        asked = pool_gpus(accelerators, region, provisioning)
        self.require_room(asked)
        return asked

    def require_room(self, gpus: Mapping[str, int]) -> None:
        """See whether GPUs, by pool name, can ever be held.

        :raises ConfigError: there is no such pool, or they can never fit into its quota.
        """
        for name, count in gpus.items():
            self._require_room(name, count)

    def _require_room(self, name: str, count: int) -> None:
        quotas = self.quotas()
        if name not in quotas:
            raise ConfigError(
                "no such GPU pool",
                source=self._source,
                key="pools",
                value=name,
                allowed=sorted(quotas),
                next_step="add the pool with its quota, or ask for an accelerator and a region that have one",
            )
        if count > quotas[name]:
            raise ConfigError(
                f"the job takes {count} GPUs of {name} at once, more than its quota can ever give",
                source=self._source,
                key=f"pools.{list(quotas).index(name)}.quota",
                value=quotas[name],
                next_step="ask for fewer GPUs or workers, or raise the quota here and at Google",
            )


def load_gpu_pools() -> GpuPools:
    """Return the pools of `gpu_pools.yaml` in the folder of configs.

    :raises ConfigError: the file is missing or wrong.
    """
    path = configs_folder() / FILE
    pools = validated(GpuPools, read_yaml(path), source=str(path))
    pools._source = str(path)
    return pools
