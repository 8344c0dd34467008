"""TPUs: cloud-tpu with TPU_V2 and TPU_V3, and the later machine types with a topology."""

from __future__ import annotations

from math import prod

from trainops.jobspec.notes import Notebook
from trainops.jobspec.tables.machines import CLOUD_TPU_TYPES, TPU_NAMES, TPU_POD_NAMES, TPU_TOPOLOGIES
from trainops.jobspec.tables.scale_tiers import Accelerator, MachineSetup

CLOUD_TPU = "cloud-tpu"
_CORES = 8
_POD_STEP = 32
SMALLEST = Accelerator(CLOUD_TPU_TYPES[0], _CORES)
"""What a cloud-tpu machine is taken to be when nothing else is said."""


def is_tpu_machine(machine: str) -> bool:
    """Whether the machine type is a TPU."""
    return machine == CLOUD_TPU or machine in TPU_TOPOLOGIES


def settled(
    setup: MachineSetup, field: str, topology: str | None, spec: str, notebook: Notebook
) -> tuple[Accelerator | None, str | None]:
    """Return the accelerator, or the topology, of a TPU machine.

    :raises ConfigError: a TPU of another kind, a size that does not exist, a topology that the machine does not have.
    """
    if setup.machine == CLOUD_TPU:
        return _cloud_tpu(setup.accelerator, field, spec, notebook), None
    if setup.accelerator is not None:
        raise notebook.error(
            field,
            f"{setup.machine} takes a topology, no accelerator",
            value=str(setup.accelerator),
            next_step="leave acceleratorConfig out and set vertex.tpuTopology",
        )
    return None, _topology(setup.machine, topology, spec, notebook)


def is_pod(accelerator: Accelerator | None) -> bool:
    """Whether it is a Pod of several TPUs."""
    return accelerator is not None and accelerator.type in CLOUD_TPU_TYPES and accelerator.count > _CORES


def chips(machine: str, topology: str) -> tuple[str, int]:
    """Return the name under which a slice's chips are counted, and their number."""
    return TPU_NAMES[machine.split("-", 1)[0]], prod(int(side) for side in topology.split("x"))


def _cloud_tpu(wanted: Accelerator | None, field: str, spec: str, notebook: Notebook) -> Accelerator:
    if wanted is None:
        wanted = SMALLEST
        notebook.defaulted(field, CLOUD_TPU, f"{spec}.acceleratorType", str(wanted))
    kind = TPU_POD_NAMES.get(wanted.type, wanted.type)
    if kind not in CLOUD_TPU_TYPES:
        raise notebook.error(
            f"{field}.type",
            f"{CLOUD_TPU} takes no {kind}",
            value=wanted.type,
            allowed=CLOUD_TPU_TYPES,
            next_step="later TPUs have machine types of their own: ct5lp-hightpu-4t, ct6e-standard-4t",
        )
    if wanted.count != _CORES and (wanted.count < _POD_STEP or wanted.count % _POD_STEP):
        raise notebook.error(
            f"{field}.count",
            f"a TPU has {_CORES} cores, a Pod a multiple of {_POD_STEP}",
            value=wanted.count,
            next_step=f"write {_CORES} for one TPU, or {_POD_STEP} for the smallest Pod",
        )
    text = "" if kind == wanted.type else f"Vertex AI calls it {kind}, and the count says that it is a Pod"
    if field.endswith("acceleratorConfig"):
        notebook.mapped(field, str(wanted), f"{spec}.acceleratorType", text)
    return Accelerator(kind, wanted.count)


def _topology(machine: str, topology: str | None, spec: str, notebook: Notebook) -> str:
    allowed = TPU_TOPOLOGIES[machine]
    if topology is None and len(allowed) == 1:
        notebook.defaulted("vertex.tpuTopology", None, f"{spec}.tpuTopology", f"{machine} has only {allowed[0]}")
        return allowed[0]
    if topology not in allowed:
        problem = "missing" if topology is None else f"{machine} has no such topology"
        step = f"choose the shape of the slice, such as {allowed[0]}"
        raise notebook.error("vertex.tpuTopology", problem, value=topology, allowed=allowed, next_step=step)
    notebook.mapped("vertex.tpuTopology", topology, f"{spec}.tpuTopology")
    return topology
