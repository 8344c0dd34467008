"""The worker pools of a job: who is in them, on which machines, with which accelerators."""

from __future__ import annotations

from dataclasses import dataclass

from trainops.jobspec.accelerators import Equipment, Origin, attached, wanted_accelerator
from trainops.jobspec.disks import check_disk
from trainops.jobspec.machines import machine_setup
from trainops.jobspec.notes import Notebook
from trainops.jobspec.tables.scale_tiers import SCALE_TIERS, Accelerator, MachineSetup
from trainops.jobspec.training_input import AcceleratorConfig, ReplicaConfig, TrainingInput

ROLES = ("master", "worker", "parameterServer", "evaluator")
"""Roles by the position of their worker pool."""

_ATTRIBUTES = ("master", "worker", "parameter_server", "evaluator")


@dataclass(frozen=True)
class Pool:
    """One worker pool with replicas in it.

    :param index: position in workerPoolSpecs.
    :param config: what the input says of image, disk and container; empty when it says nothing.
    """

    index: int
    replicas: int
    equipment: Equipment
    config: ReplicaConfig

    @property
    def role(self) -> str:
        """Role of the pool in AI Platform's words."""
        return ROLES[self.index]

    @property
    def target(self) -> str:
        """Path of the pool in the CustomJob."""
        return pool_target(self.index)

    @property
    def config_key(self) -> str:
        """Key of the pool's ReplicaConfig."""
        return f"{self.role}Config"


def pool_target(index: int) -> str:
    """Path of a worker pool in the CustomJob."""
    return f"jobSpec.workerPoolSpecs[{index}]"


def worker_pools(spec: TrainingInput, notebook: Notebook) -> list[Pool]:
    """Return the pools with replicas, the master's first.

    :raises ConfigError: a type is missing, unknown or retired under policy `refuse`; an accelerator does not fit.
    """
    tier = _scale_tier(spec, notebook)
    pools = _custom_pools(spec, notebook) if tier == "CUSTOM" else _fixed_pools(spec, tier, notebook)
    for pool in pools:
        if _given_config(spec, pool.index) == ReplicaConfig():
            notebook.mapped(pool.config_key, {}, "", "empty")
        disk, key, target = pool.config.disk_config, f"{pool.config_key}.diskConfig", f"{pool.target}.diskSpec"
        check_disk(disk, key, pool.equipment.machine, target, notebook)
    return pools


def _scale_tier(spec: TrainingInput, notebook: Notebook) -> str:
    given = [key for key in _custom_fields(spec) if not key.endswith("Config")]
    if spec.scale_tier is not None:
        if spec.scale_tier != "CUSTOM" and given:
            raise notebook.error(
                given[0],
                f"a {spec.scale_tier} job has a fixed cluster, so {', '.join(given)} must be left out",
                next_step="set scaleTier to CUSTOM to choose machines and counts",
            )
        return spec.scale_tier
    tier = "CUSTOM" if given else "BASIC"
    reason = f"read as CUSTOM because of {', '.join(given)}" if given else "no scaleTier and no machine: BASIC"
    notebook.defaulted("scaleTier", None, "jobSpec.workerPoolSpecs", reason)
    return tier


def _custom_fields(spec: TrainingInput) -> list[str]:
    found = []
    for role, attribute in zip(ROLES, _ATTRIBUTES, strict=True):
        for kind in ("type", "count", "config"):
            if getattr(spec, f"{attribute}_{kind}", None) is not None:
                found.append(f"{role}{kind.capitalize()}")
    return found


def _fixed_pools(spec: TrainingInput, tier: str, notebook: Notebook) -> list[Pool]:
    rows = SCALE_TIERS[tier]
    _refuse_configs_without_pool(spec, tier, {row.role for row in rows}, notebook)
    pools = []
    for row in rows:
        index = ROLES.index(row.role)
        config = _config(spec, index)
        if config.accelerator_config is not None:
            raise notebook.error(
                f"{row.role}Config.acceleratorConfig",
                f"a {tier} job has fixed accelerators",
                next_step="set scaleTier to CUSTOM and masterType to choose them",
            )
        setup = machine_setup(row.setup, "scaleTier", tier, pool_target(index), notebook)
        origin = Origin(tier, "scaleTier", "scaleTier", f"{pool_target(index)}.machineSpec")
        equipment = attached(setup, origin, spec.vertex.tpu_topology, notebook)
        notebook.mapped("scaleTier", tier, pool_target(index), f"{row.role}: {row.replicas} x {equipment}")
        pools.append(Pool(index, row.replicas, equipment, config))
    return pools


def _refuse_configs_without_pool(spec: TrainingInput, tier: str, roles: set[str], notebook: Notebook) -> None:
    for index, role in enumerate(ROLES):
        if role not in roles and _given_config(spec, index) is not None:
            raise notebook.error(
                f"{role}Config", f"a {tier} job has no such pool", next_step="set scaleTier to CUSTOM, or leave it out"
            )


def _custom_pools(spec: TrainingInput, notebook: Notebook) -> list[Pool]:
    if spec.scale_tier is not None:
        notebook.mapped("scaleTier", spec.scale_tier, "jobSpec.workerPoolSpecs", "pools from the types and counts")
    pools = [_custom_pool(spec, index, notebook) for index in range(len(ROLES))]
    return [pool for pool in pools if pool is not None]


def _custom_pool(spec: TrainingInput, index: int, notebook: Notebook) -> Pool | None:
    role, target = ROLES[index], pool_target(index)
    name: str | None = getattr(spec, f"{_ATTRIBUTES[index]}_type")
    replicas = _replicas(spec, index, notebook)
    if replicas == 0:
        _note_empty_pool(spec, index, notebook)
        return None
    if name is None:
        why = "scaleTier CUSTOM needs it" if index == 0 else f"{role}Count is {replicas}"
        raise notebook.error(f"{role}Type", f"missing: {why}", next_step="name a machine type, such as n1-standard-8")
    config = _config(spec, index)
    accelerator = config.accelerator_config
    where = f"{role}Config.acceleratorConfig"
    setup = machine_setup(name, f"{role}Type", name, target, notebook)
    if accelerator is not None:
        setup = MachineSetup(setup.machine, _one_accelerator(setup, accelerator, name, where, notebook))
    configured = accelerator is not None and setup.accelerator is not None
    origin = Origin(name, f"{role}Type", where if configured else f"{role}Type", f"{target}.machineSpec")
    equipment = attached(setup, origin, spec.vertex.tpu_topology, notebook)
    return Pool(index, replicas, equipment, config)


def _one_accelerator(
    setup: MachineSetup, config: AcceleratorConfig, name: str, where: str, notebook: Notebook
) -> Accelerator | None:
    wanted = wanted_accelerator(setup.machine, config, where, notebook)
    own = setup.accelerator
    if own is None or wanted is None or own == wanted or setup.machine == "cloud-tpu":
        return wanted or own
    raise notebook.error(
        where,
        f"{name} already has {own}",
        value=str(wanted),
        next_step=f"leave acceleratorConfig out, or name the machine type {setup.machine}",
    )


def _replicas(spec: TrainingInput, index: int, notebook: Notebook) -> int:
    if index == 0:
        return 1
    key = f"{ROLES[index]}Count"
    count: int | None = getattr(spec, f"{_ATTRIBUTES[index]}_count")
    if count is None:
        return 0
    if count < 0:
        raise notebook.error(key, "a number of replicas is 0 or more", value=count, next_step="0 leaves the pool out")
    if count > 0:
        notebook.mapped(key, count, f"{pool_target(index)}.replicaCount")
    return count


def _note_empty_pool(spec: TrainingInput, index: int, notebook: Notebook) -> None:
    role, attribute = ROLES[index], _ATTRIBUTES[index]
    for kind in ("type", "config", "count"):
        value = getattr(spec, f"{attribute}_{kind}")
        if value is None:
            continue
        text = "0 replicas: no such pool" if kind == "count" else f"not sent: {role}Count is 0 or not given"
        shown = value if kind != "config" else value.model_dump(by_alias=True, exclude_none=True)
        note = notebook.mapped if kind == "count" else notebook.changed
        note(f"{role}{kind.capitalize()}", shown, "", text)


def _given_config(spec: TrainingInput, index: int) -> ReplicaConfig | None:
    config: ReplicaConfig | None = getattr(spec, f"{_ATTRIBUTES[index]}_config")
    return config


def _config(spec: TrainingInput, index: int) -> ReplicaConfig:
    return _given_config(spec, index) or ReplicaConfig()
