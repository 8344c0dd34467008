"""Which accelerators a machine gets: they fit, a declared substitute fits, or the job is refused."""

from __future__ import annotations

from dataclasses import dataclass

from trainops.errors import ConfigError
from trainops.jobspec import tpus
from trainops.jobspec.notes import Notebook
from trainops.jobspec.tables.machines import (
    CLOUD_TPU_TYPES,
    GPU_ALWAYS,
    GPU_COUNTS,
    GPU_TYPES,
    SCARCE_GPUS,
    TPU_POD_NAMES,
)
from trainops.jobspec.tables.scale_tiers import Accelerator, MachineSetup
from trainops.jobspec.tables.substitutes import RETIRED_GPU_REASONS, RETIRED_GPUS, ROOMS_FOR_GPU
from trainops.jobspec.training_input import AcceleratorConfig


@dataclass(frozen=True)
class Origin:
    """Where the machine of a pool comes from in the input, and where it goes.

    :param name: what the user wrote: a machine, a legacy name or a scale tier.
    :param machine_field: key of that name.
    :param accelerator_field: key of the acceleratorConfig, or of the name that brought the accelerator.
    :param target: path of the MachineSpec in the CustomJob.
    """

    name: str
    machine_field: str
    accelerator_field: str
    target: str

    @property
    def configured(self) -> bool:
        """Whether the accelerator was asked for by an acceleratorConfig."""
        return self.accelerator_field != self.machine_field

    def key(self, part: str) -> str:
        """Key of a part of the acceleratorConfig, or of the name that stands for it."""
        return f"{self.accelerator_field}.{part}" if self.configured else self.accelerator_field


@dataclass(frozen=True)
class Equipment:
    """What each replica of a pool runs on."""

    machine: str
    accelerator: Accelerator | None = None
    topology: str | None = None

    def __str__(self) -> str:
        """Describe it for people."""
        extra = f" + {self.accelerator}" if self.accelerator else ""
        return f"{self.machine}{extra}" + (f" ({self.topology})" if self.topology else "")

    @property
    def image_kind(self) -> str:
        """Kind of image that it needs: cpu, gpu or tpu."""
        if self.topology is not None or self.machine == tpus.CLOUD_TPU:
            return "tpu"
        return "gpu" if self.accelerator else "cpu"


def wanted_accelerator(machine: str, config: AcceleratorConfig, key: str, notebook: Notebook) -> Accelerator | None:
    """Return what an acceleratorConfig asks for; None when it is empty.

    :raises ConfigError: the type or the count is missing, and the machine does not settle it.
    """
    if config.type is None and config.count is None:
        notebook.mapped(key, {}, "", "empty: no accelerator")
        return None
    if config.count is not None and config.count < 1:
        raise notebook.error(
            f"{key}.count",
            "an accelerator count is 1 or more",
            value=config.count,
            next_step="leave acceleratorConfig out for a machine without accelerators",
        )
    settled = tpus.SMALLEST if machine == tpus.CLOUD_TPU else _built_in(machine)
    kind = config.type or (settled.type if settled else None)
    count = config.count or (settled.count if settled else None)
    if kind is None:
        step = "name one, or leave acceleratorConfig out"
        raise notebook.error(
            f"{key}.type", "missing: accelerators of which type?", allowed=_types(machine), next_step=step
        )
    if count is None:
        allowed = GPU_COUNTS.get(machine, {}).get(kind, ())
        step = "say how many each machine has" if allowed else _taken_by(machine)
        raise notebook.error(f"{key}.count", f"missing: how many {kind}?", allowed=allowed, next_step=step)
    return Accelerator(kind, count)


def attached(setup: MachineSetup, origin: Origin, topology: str | None, notebook: Notebook) -> Equipment:
    """Return the machine with its accelerators.

    :param topology: `vertex.tpuTopology`, for TPU machines that have one.
    :raises ConfigError: the accelerator does not exist, does not fit, or has another count; what fits is named.
    """
    wanted = setup.accelerator
    if tpus.is_tpu_machine(setup.machine):
        field = origin.accelerator_field
        return Equipment(setup.machine, *tpus.settled(setup, field, topology, origin.target, notebook))
    if wanted is None:
        return Equipment(setup.machine, _come_with(setup.machine, origin, notebook))
    _check_exists(wanted, setup.machine, origin, notebook)
    accelerator = Accelerator(_in_service(setup.machine, wanted, origin, notebook), wanted.count)
    machine = _room_for(setup.machine, accelerator, origin, notebook)
    if origin.configured and accelerator == wanted:
        text = SCARCE_GPUS.get(wanted.type, "")
        notebook.mapped(origin.accelerator_field, str(wanted), f"{origin.target}.acceleratorType", text)
    return Equipment(machine, accelerator)


def _built_in(machine: str) -> Accelerator | None:
    if machine not in GPU_ALWAYS:
        return None
    ((kind, (count,)),) = GPU_COUNTS[machine].items()
    return Accelerator(kind, count)


def _come_with(machine: str, origin: Origin, notebook: Notebook) -> Accelerator | None:
    own = _built_in(machine)
    if own is not None:
        text = f"{machine} always has {own}"
        notebook.defaulted(origin.machine_field, origin.name, f"{origin.target}.acceleratorType", text)
    return own


def _check_exists(wanted: Accelerator, machine: str, origin: Origin, notebook: Notebook) -> None:
    if wanted.type in GPU_TYPES or wanted.type in RETIRED_GPUS:
        return
    if wanted.type in {*CLOUD_TPU_TYPES, *TPU_POD_NAMES}:
        problem, next_step = f"{machine} takes no TPU", "name the machine type cloud_tpu"
    elif wanted.type.startswith("TPU_"):
        problem = f"{machine} takes no TPU"
        next_step = "name a TPU machine type, such as ct5lp-hightpu-4t, without acceleratorConfig"
    else:
        problem, next_step = "no such accelerator", _taken_by(machine)
    in_service = [kind for kind in GPU_TYPES if kind not in RETIRED_GPUS]
    raise notebook.error(origin.key("type"), problem, value=wanted.type, allowed=in_service, next_step=next_step)


def _types(machine: str) -> list[str]:
    return [kind for kind in GPU_COUNTS.get(machine, {}) if kind not in RETIRED_GPUS]


def _taken_by(machine: str) -> str:
    kinds = _types(machine)
    return f"{machine} takes {', '.join(kinds)}" if kinds else f"{machine} takes no accelerator"


def _in_service(machine: str, wanted: Accelerator, origin: Origin, notebook: Notebook) -> str:
    """Return the GPU type to use: the one asked for, or the substitute of a retired one."""
    successors = RETIRED_GPUS.get(wanted.type)
    if successors is None:
        return wanted.type
    fitting = [Accelerator(kind, wanted.count) for kind in successors]
    fitting = [accelerator for accelerator in fitting if _fits(machine, accelerator)]
    if not fitting:
        raise _misfit(machine, Accelerator(successors[0], wanted.count), origin, notebook, instead_of=wanted.type)
    notebook.substituted(
        origin.accelerator_field,
        str(wanted) if origin.configured else origin.name,
        str(fitting[0]),
        f"{origin.target}.acceleratorType",
        RETIRED_GPU_REASONS[wanted.type],
        fitting,
    )
    return fitting[0].type


def _fits(machine: str, accelerator: Accelerator) -> bool:
    return accelerator.count in GPU_COUNTS.get(machine, {}).get(accelerator.type, ())


def _room_for(machine: str, accelerator: Accelerator, origin: Origin, notebook: Notebook) -> str:
    if _fits(machine, accelerator):
        return machine
    room = ROOMS_FOR_GPU.get((machine, accelerator.type, accelerator.count))
    if room is None:
        raise _misfit(machine, accelerator, origin, notebook)
    other_counts = [Accelerator(accelerator.type, count) for count in GPU_COUNTS[machine][accelerator.type]]
    alternatives = [f"{name} + {accelerator}" for name in _machines_for(accelerator)]
    alternatives += [f"{machine} + {other}" for other in other_counts]
    reason = f"{machine} does not take {accelerator}"
    target = f"{origin.target}.machineType"
    notebook.substituted(origin.machine_field, origin.name, room, target, reason, alternatives)
    return room


def _misfit(
    machine: str, accelerator: Accelerator, origin: Origin, notebook: Notebook, instead_of: str = ""
) -> ConfigError:
    asked = f" (in place of {instead_of})" if instead_of else ""
    kinds = GPU_COUNTS.get(machine, {})
    counts = kinds.get(accelerator.type)
    if counts:
        problem = f"{machine} does not take this many {accelerator.type}{asked}"
        key, value, allowed = origin.key("count"), str(accelerator.count), [str(count) for count in counts]
    else:
        problem = f"{machine} takes no {accelerator.type}{asked}" if kinds else f"{machine} takes no GPU"
        key, value = origin.key("type"), accelerator.type
        allowed = _types(machine)
    return notebook.error(key, problem, value=value, allowed=allowed, next_step=_where_it_fits(accelerator))


def _machines_for(accelerator: Accelerator) -> list[str]:
    return [machine for machine in GPU_COUNTS if _fits(machine, accelerator)]


def _where_it_fits(accelerator: Accelerator) -> str:
    machines = _machines_for(accelerator)
    if machines:
        return f"machines that take {accelerator}: {', '.join(machines)}"
    by_count: dict[int, str] = {}
    for machine, kinds in GPU_COUNTS.items():
        for count in kinds.get(accelerator.type, ()):
            by_count.setdefault(count, machine)
    fits = ", ".join(f"{count} ({machine})" for count, machine in sorted(by_count.items()))
    return f"no machine takes {accelerator}; counts that exist: {fits}"
