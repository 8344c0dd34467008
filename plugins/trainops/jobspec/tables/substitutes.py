"""What stands in for things that Vertex AI no longer has, or never had.

A substitute keeps the number of replicas and of accelerators, and never gives fewer vCPUs or less memory than a
retired machine had. The policy of the environment says whether substitutes are taken: allow, warn or refuse.
"""

from __future__ import annotations

MISREAD_MACHINES: dict[str, str] = {
    "complex_model_s_worker": "complex_model_s",
    "complex_model_m_worker": "complex_model_m",
    "complex_model_l_worker": "complex_model_l",
}
"""Names that stand in people's configs and were never machines -> the machine that is meant."""

RETIRED_MACHINES: dict[str, str] = {
    "n1-highcpu-8": "n1-standard-8",
    "n1-standard-2": "n1-highmem-2",
}
"""Compute Engine types that AI Platform had and Vertex AI training has not -> the smallest N1 that holds them."""

RETIRED_GPUS: dict[str, tuple[str, ...]] = {
    "NVIDIA_TESLA_K80": ("NVIDIA_TESLA_T4", "NVIDIA_TESLA_V100"),
    "NVIDIA_TESLA_P100": ("NVIDIA_TESLA_V100", "NVIDIA_TESLA_T4"),
}
"""Retired GPU -> what replaces it: the first that the machine takes in the same count.

K80: no longer in the list of Vertex AI. P100: end of support on 2026-09-15. Both successors have at least their memory.
"""

RETIRED_GPU_REASONS: dict[str, str] = {
    "NVIDIA_TESLA_K80": "NVIDIA_TESLA_K80 is retired",
    "NVIDIA_TESLA_P100": "NVIDIA_TESLA_P100 reached its end of support on 2026-09-15",
}

ROOMS_FOR_GPU: dict[tuple[str, str, int], str] = {
    ("n1-highcpu-16", "NVIDIA_TESLA_V100", 1): "n1-standard-8",
}
"""Machine, GPU and count that do not go together -> the machine to take, so that the GPUs stay as they were.

AI Platform's complex_model_m is n1-highcpu-16, which takes 2, 4 or 8 V100; n1-standard-8 is what standard_v100 was.
"""

RETIRED_RUNTIMES: dict[str, str] = {
    **{f"1.{minor}": "1.15" for minor in range(15)},
    "2.10": "2.11",
}
"""AI Platform runtime without an image on Vertex AI -> the nearest newer runtime that has one."""

RETIRED_PYTHONS: dict[str, str] = {"2.7": "3.7", "3.5": "3.7"}
"""Python of AI Platform's runtimes up to 1.15 that no image of Vertex AI has -> the one that they have."""

TPU_RUNTIMES: dict[str, str] = {
    **{f"2.{minor}": "2.12" for minor in range(1, 12)},
    "2.13": "2.15",
    "2.14": "2.15",
}
"""Runtime without an image for TPU VMs -> the nearest newer one that has one; TensorFlow 1 never ran on TPU VMs."""
