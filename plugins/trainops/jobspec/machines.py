"""Machine names: legacy names of AI Platform, Compute Engine types, and those that are no more."""

from __future__ import annotations

from trainops.jobspec.notes import Notebook
from trainops.jobspec.tables.machines import MACHINE_TYPES
from trainops.jobspec.tables.scale_tiers import LEGACY_MACHINES, MachineSetup
from trainops.jobspec.tables.substitutes import MISREAD_MACHINES, RETIRED_MACHINES


def machine_setup(wanted: str | MachineSetup, field: str, value: str, target: str, notebook: Notebook) -> MachineSetup:
    """Return the Vertex AI machine type for a name, with the accelerators that the name brings along.

    :param wanted: what the user wrote, or the setup that a scale tier stands for.
    :param field: the key that the name came from.
    :raises ConfigError: no such machine; or it is retired, and the policy refuses substitutes.
    """
    target = f"{target}.machineSpec.machineType"
    setup = wanted if isinstance(wanted, MachineSetup) else _known(wanted, field, target, notebook)
    substitute = RETIRED_MACHINES.get(setup.machine)
    if substitute is None:
        return setup
    reason = f"Vertex AI training has no {setup.machine}"
    notebook.substituted(field, value, substitute, target, reason, alternatives=_alternatives(substitute))
    return MachineSetup(substitute, setup.accelerator)


def _known(name: str, field: str, target: str, notebook: Notebook) -> MachineSetup:
    meant = MISREAD_MACHINES.get(name)
    if meant is not None:
        reason = f"{name} was never a machine of AI Platform"
        notebook.substituted(field, name, meant, target, reason, alternatives=LEGACY_MACHINES)
    legacy = LEGACY_MACHINES.get(meant or name)
    if legacy is not None:
        notebook.mapped(field, name, target, f"{meant or name} is {_described(legacy)}")
        return legacy
    if name not in MACHINE_TYPES and name not in RETIRED_MACHINES:
        raise notebook.error(
            field,
            "no such machine type",
            value=name,
            allowed=[*LEGACY_MACHINES, *MACHINE_TYPES],
            next_step="name a machine type of Vertex AI training, or a legacy name of AI Platform",
        )
    if name in MACHINE_TYPES:
        notebook.mapped(field, name, target)
    return MachineSetup(name)


def _described(setup: MachineSetup) -> str:
    if setup.accelerator is None:
        return setup.machine
    return f"{setup.machine} with {setup.accelerator}"


def _alternatives(substitute: str) -> list[str]:
    """Machines of the substitute's size, so that a user sees what there is to choose from."""
    size = substitute.rsplit("-", 1)[-1]
    same_size = [machine for machine in MACHINE_TYPES if machine.rsplit("-", 1)[-1] == size]
    return [substitute, *(machine for machine in same_size if machine != substitute)]
