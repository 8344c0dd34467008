"""What AI Platform Training's names for machines and clusters stood for on Compute Engine.

Sources: https://cloud.google.com/ml-engine/docs/pricing and the training overview (2018 to 2020). Every row was checked
against the list prices of its parts; BASIC_TPU is known by its price alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Accelerator:
    """An accelerator type, and how many of it one machine has."""

    type: str
    count: int

    def __str__(self) -> str:
        """Describe it for people."""
        return f"{self.count} x {self.type}"


class MachineSetup(NamedTuple):
    """A Compute Engine machine type with the accelerators that belong to it."""

    machine: str
    accelerator: Accelerator | None = None


class TierPool(NamedTuple):
    """One pool of a fixed scale tier."""

    role: str
    replicas: int
    setup: MachineSetup


_K80, _P100, _V100 = "NVIDIA_TESLA_K80", "NVIDIA_TESLA_P100", "NVIDIA_TESLA_V100"

CLOUD_TPU = MachineSetup("cloud-tpu", Accelerator("TPU_V2", 8))

LEGACY_MACHINES: dict[str, MachineSetup] = {
    "standard": MachineSetup("n1-standard-4"),
    "large_model": MachineSetup("n1-highmem-8"),
    "complex_model_s": MachineSetup("n1-highcpu-8"),
    "complex_model_m": MachineSetup("n1-highcpu-16"),
    "complex_model_l": MachineSetup("n1-highcpu-32"),
    "standard_gpu": MachineSetup("n1-standard-8", Accelerator(_K80, 1)),
    "complex_model_m_gpu": MachineSetup("n1-standard-16", Accelerator(_K80, 4)),
    "complex_model_l_gpu": MachineSetup("n1-standard-32", Accelerator(_K80, 8)),
    "standard_p100": MachineSetup("n1-standard-8", Accelerator(_P100, 1)),
    "complex_model_m_p100": MachineSetup("n1-standard-16", Accelerator(_P100, 4)),
    "standard_v100": MachineSetup("n1-standard-8", Accelerator(_V100, 1)),
    "large_model_v100": MachineSetup("n1-highmem-8", Accelerator(_V100, 1)),
    "complex_model_m_v100": MachineSetup("n1-standard-16", Accelerator(_V100, 4)),
    "complex_model_l_v100": MachineSetup("n1-standard-32", Accelerator(_V100, 8)),
    "cloud_tpu": CLOUD_TPU,
}
"""Legacy machine name -> the Compute Engine machine that it was."""

SCALE_TIERS: dict[str, tuple[TierPool, ...]] = {
    "BASIC": (TierPool("master", 1, MachineSetup("n1-standard-4")),),
    "STANDARD_1": (
        TierPool("master", 1, MachineSetup("n1-highcpu-8")),
        TierPool("worker", 4, MachineSetup("n1-highcpu-8")),
        TierPool("parameterServer", 3, MachineSetup("n1-standard-4")),
    ),
    "PREMIUM_1": (
        TierPool("master", 1, MachineSetup("n1-highcpu-16")),
        TierPool("worker", 19, MachineSetup("n1-highcpu-16")),
        TierPool("parameterServer", 11, MachineSetup("n1-highmem-8")),
    ),
    "BASIC_GPU": (TierPool("master", 1, MachineSetup("n1-standard-8", Accelerator(_K80, 1))),),
    "BASIC_TPU": (
        TierPool("master", 1, MachineSetup("n1-standard-4")),
        TierPool("worker", 1, CLOUD_TPU),
    ),
}
"""Fixed scale tier -> its pools; CUSTOM takes its pools from the job itself."""
