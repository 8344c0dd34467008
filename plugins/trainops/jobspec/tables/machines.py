"""The machine types of Vertex AI training, and the accelerators that each takes.

Source, as of 2026-08-22:
https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/configure-compute
N1 rows of which the page shows three counts were read as P4, T4, V100: four P100 reach 64 vCPUs and 208 GB at most.
"""

from __future__ import annotations

_P4, _P100, _T4, _V100 = "NVIDIA_TESLA_P4", "NVIDIA_TESLA_P100", "NVIDIA_TESLA_T4", "NVIDIA_TESLA_V100"
_A100, _A100_80, _H100, _L4 = "NVIDIA_TESLA_A100", "NVIDIA_A100_80GB", "NVIDIA_H100_80GB", "NVIDIA_L4"
_RTX = "NVIDIA_RTX_PRO_6000"

_Counts = dict[str, tuple[int, ...]]

_N1_SMALL: _Counts = {_P4: (1, 2, 4), _P100: (1, 2, 4), _T4: (1, 2, 4), _V100: (1, 2, 4, 8)}
_N1_16: _Counts = {_P4: (1, 2, 4), _P100: (1, 2, 4), _T4: (1, 2, 4), _V100: (2, 4, 8)}
_N1_32: _Counts = {_P4: (2, 4), _P100: (2, 4), _T4: (2, 4), _V100: (4, 8)}
_N1_LARGE: _Counts = {_P4: (4,), _T4: (4,), _V100: (8,)}

GPU_COUNTS: dict[str, _Counts] = {
    "n1-standard-4": _N1_SMALL,
    "n1-standard-8": _N1_SMALL,
    "n1-highmem-2": _N1_SMALL,
    "n1-highmem-4": _N1_SMALL,
    "n1-highmem-8": _N1_SMALL,
    "n1-standard-16": _N1_16,
    "n1-highmem-16": _N1_16,
    "n1-highcpu-16": _N1_16,
    "n1-standard-32": _N1_32,
    "n1-highmem-32": _N1_32,
    "n1-highcpu-32": _N1_32,
    "n1-standard-64": _N1_LARGE,
    "n1-standard-96": _N1_LARGE,
    "n1-highmem-64": _N1_LARGE,
    "n1-highmem-96": _N1_LARGE,
    "n1-highcpu-64": {**_N1_LARGE, _P100: (4,)},
    "n1-highcpu-96": _N1_LARGE,
    "g2-standard-4": {_L4: (1,)},
    "g2-standard-8": {_L4: (1,)},
    "g2-standard-12": {_L4: (1,)},
    "g2-standard-16": {_L4: (1,)},
    "g2-standard-24": {_L4: (2,)},
    "g2-standard-32": {_L4: (1,)},
    "g2-standard-48": {_L4: (4,)},
    "g2-standard-96": {_L4: (8,)},
    "g4-standard-48": {_RTX: (1,)},
    "g4-standard-96": {_RTX: (2,)},
    "g4-standard-192": {_RTX: (4,)},
    "g4-standard-384": {_RTX: (8,)},
    "a2-highgpu-1g": {_A100: (1,)},
    "a2-highgpu-2g": {_A100: (2,)},
    "a2-highgpu-4g": {_A100: (4,)},
    "a2-highgpu-8g": {_A100: (8,)},
    "a2-megagpu-16g": {_A100: (16,)},
    "a2-ultragpu-1g": {_A100_80: (1,)},
    "a2-ultragpu-2g": {_A100_80: (2,)},
    "a2-ultragpu-4g": {_A100_80: (4,)},
    "a2-ultragpu-8g": {_A100_80: (8,)},
    "a3-highgpu-1g": {_H100: (1,)},
    "a3-highgpu-2g": {_H100: (2,)},
    "a3-highgpu-4g": {_H100: (4,)},
    "a3-highgpu-8g": {_H100: (8,)},
    "a3-megagpu-8g": {"NVIDIA_H100_MEGA_80GB": (8,)},
    "a3-ultragpu-8g": {"NVIDIA_H200_141GB": (8,)},
    "a4-highgpu-8g": {"NVIDIA_B200": (8,)},
    "a4x-highgpu-4g": {"NVIDIA_GB200": (4,)},
}
"""Machine type -> GPU type -> how many of it one machine takes."""

GPU_ALWAYS = frozenset(machine for machine in GPU_COUNTS if not machine.startswith("n1-"))
"""Machine types that come with their GPUs: each of them has one GPU type and one count."""

GPU_TYPES: tuple[str, ...] = tuple(dict.fromkeys(gpu for counts in GPU_COUNTS.values() for gpu in counts))

SCARCE_GPUS: dict[str, str] = {
    "NVIDIA_GB200": "needs a shared reservation",
    "NVIDIA_B200": "a reservation or Spot is recommended",
    "NVIDIA_H200_141GB": "a reservation or Spot is recommended",
    "NVIDIA_H100_MEGA_80GB": "a reservation or Spot is recommended",
}
"""GPU type -> what Google says of getting one."""

TPU_TOPOLOGIES: dict[str, tuple[str, ...]] = {
    "ct5lp-hightpu-1t": ("1x1",),
    "ct5lp-hightpu-4t": ("2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16"),
    "ct5lp-hightpu-8t": ("2x4",),
    "ct6e-standard-1t": ("1x1",),
    "ct6e-standard-4t": ("2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16"),
    "ct6e-standard-8t": ("2x4",),
    "tpu7x-standard-4t": ("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "4x8x8", "8x8x8", "8x8x16"),
}
"""TPU machine type -> its topologies; such a machine has no accelerator type, and one replica is a whole slice."""

TPU_NAMES: dict[str, str] = {"ct5lp": "TPU_V5_LITEPOD", "ct6e": "TPU_V6E", "tpu7x": "TPU_7X"}
"""Family of a TPU machine type -> the name under which its chips are counted."""

CLOUD_TPU_TYPES = ("TPU_V2", "TPU_V3")
"""Accelerators of machine type cloud-tpu: 8 cores, or a Pod of a multiple of 32."""

TPU_POD_NAMES: dict[str, str] = {"TPU_V2_POD": "TPU_V2", "TPU_V3_POD": "TPU_V3"}
"""AI Platform's own names for Pods -> Vertex AI's name, which leaves the size to the count."""


def _sizes(family: str, *sizes: int) -> tuple[str, ...]:
    return tuple(f"{family}-{size}" for size in sizes)


MACHINE_TYPES: tuple[str, ...] = (
    *_sizes("n1-standard", 4, 8, 16, 32, 64, 96),
    *_sizes("n1-highmem", 2, 4, 8, 16, 32, 64, 96),
    *_sizes("n1-highcpu", 16, 32, 64, 96),
    *_sizes("n2-standard", 4, 8, 16, 32, 48, 64, 80),
    *_sizes("n2-highmem", 2, 4, 8, 16, 32, 48, 64, 80),
    *_sizes("n2-highcpu", 16, 32, 48, 64, 80),
    *_sizes("n4-standard", 2, 4, 8, 16, 32, 48, 64, 80),
    *_sizes("n4-highmem", 2, 4, 8, 16, 32, 48, 64, 80),
    *_sizes("n4-highcpu", 2, 4, 8, 16, 32, 48, 64, 80),
    *_sizes("e2-standard", 4, 8, 16, 32),
    *_sizes("e2-highmem", 2, 4, 8, 16),
    *_sizes("e2-highcpu", 16, 32),
    *_sizes("c2-standard", 4, 8, 16, 30, 60),
    *_sizes("m1-ultramem", 40, 80, 160),
    *_sizes("m1-megamem", 96),
    *sorted(GPU_ALWAYS),
    "cloud-tpu",
    *TPU_TOPOLOGIES,
)
"""Every machine type that a worker pool may name."""
