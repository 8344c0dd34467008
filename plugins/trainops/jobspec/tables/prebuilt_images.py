"""The prebuilt training containers of Vertex AI.

Source, as of 2026-08-22:
https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/pre-built-containers
Only the tag `latest` is supported. An image past its last day may be refused by Vertex, or be gone.
"""

from __future__ import annotations

from typing import NamedTuple

REPOSITORY = "us-docker.pkg.dev/vertex-ai/training"
"""Where the images are; europe-docker.pkg.dev and asia-docker.pkg.dev hold the same ones."""


class PrebuiltImage(NamedTuple):
    """One image of the list: its Python, and the last day of its availability."""

    python: str
    available_until: str


PREBUILT_IMAGES: dict[str, PrebuiltImage] = {
    "tf-cpu.2-17.py310": PrebuiltImage("3.10", "2026-07-11"),
    "tf-gpu.2-17.py310": PrebuiltImage("3.10", "2026-07-11"),
    "tf-cpu.2-16.py310": PrebuiltImage("3.10", "2026-06-28"),
    "tf-gpu.2-16.py310": PrebuiltImage("3.10", "2026-06-28"),
    "tf-cpu.2-15.py310": PrebuiltImage("3.10", "2025-11-14"),
    "tf-gpu.2-15.py310": PrebuiltImage("3.10", "2025-11-14"),
    "tf-tpu.2-15.cp310": PrebuiltImage("3.10", "2025-10-23"),
    "tf-cpu.2-14.py310": PrebuiltImage("3.10", "2025-09-26"),
    "tf-gpu.2-14.py310": PrebuiltImage("3.10", "2025-09-26"),
    "tf-cpu.2-13.py310": PrebuiltImage("3.10", "2025-07-05"),
    "tf-gpu.2-13.py310": PrebuiltImage("3.10", "2025-07-05"),
    "tf-cpu.2-12.py310": PrebuiltImage("3.10", "2025-06-30"),
    "tf-gpu.2-12.py310": PrebuiltImage("3.10", "2025-06-30"),
    "tf-tpu.2-12": PrebuiltImage("3.8", "2025-06-30"),
    "tf-cpu.2-11.py310": PrebuiltImage("3.10", "2024-11-15"),
    "tf-gpu.2-11.py310": PrebuiltImage("3.10", "2024-11-15"),
    "tf-cpu.2-11": PrebuiltImage("3.7", "2024-11-15"),
    "tf-gpu.2-11": PrebuiltImage("3.7", "2024-11-15"),
    "tf-cpu.2-9.py310": PrebuiltImage("3.10", "2024-11-15"),
    "tf-gpu.2-9.py310": PrebuiltImage("3.10", "2024-11-15"),
    "tf-cpu.2-9": PrebuiltImage("3.7", "2024-11-15"),
    "tf-gpu.2-9": PrebuiltImage("3.7", "2024-11-15"),
    "tf-cpu.2-8.py310": PrebuiltImage("3.10", "2024-11-15"),
    "tf-gpu.2-8.py310": PrebuiltImage("3.10", "2024-11-15"),
    "tf-cpu.2-8": PrebuiltImage("3.7", "2024-11-15"),
    "tf-gpu.2-8": PrebuiltImage("3.7", "2024-11-15"),
    "tf-cpu.2-7": PrebuiltImage("3.7", "2024-09-01"),
    "tf-gpu.2-7": PrebuiltImage("3.7", "2024-09-01"),
    "tf-cpu.2-6": PrebuiltImage("3.7", "2024-09-01"),
    "tf-gpu.2-6": PrebuiltImage("3.7", "2024-09-01"),
    "tf-cpu.2-5": PrebuiltImage("3.7", "2024-09-01"),
    "tf-gpu.2-5": PrebuiltImage("3.7", "2024-09-01"),
    "tf-cpu.2-4": PrebuiltImage("3.7", "2024-09-01"),
    "tf-gpu.2-4": PrebuiltImage("3.7", "2024-09-01"),
    "tf-cpu.2-3": PrebuiltImage("3.7", "2024-09-01"),
    "tf-gpu.2-3": PrebuiltImage("3.7", "2024-09-01"),
    "tf-cpu.2-2": PrebuiltImage("3.7", "2024-09-01"),
    "tf-gpu.2-2": PrebuiltImage("3.7", "2024-09-01"),
    "tf-cpu.2-1": PrebuiltImage("3.7", "2024-09-01"),
    "tf-gpu.2-1": PrebuiltImage("3.7", "2024-09-01"),
    "tf-cpu.1-15": PrebuiltImage("3.7", "2024-09-01"),
    "tf-gpu.1-15": PrebuiltImage("3.7", "2024-09-01"),
    "pytorch-xla.2-4.py310": PrebuiltImage("3.10", "2026-07-24"),
    "pytorch-gpu.2-4.py310": PrebuiltImage("3.10", "2026-07-24"),
    "pytorch-xla.2-3.py310": PrebuiltImage("3.10", "2026-04-24"),
    "pytorch-gpu.2-3.py310": PrebuiltImage("3.10", "2026-04-24"),
    "pytorch-xla.2-2.py310": PrebuiltImage("3.10", "2026-10-23"),
    "pytorch-gpu.2-2.py310": PrebuiltImage("3.10", "2026-01-30"),
    "pytorch-tpu.2-2.cp310": PrebuiltImage("3.10", "2025-11-06"),
    "pytorch-xla.2-1.py310": PrebuiltImage("3.10", "2025-10-04"),
    "pytorch-gpu.2-1.py310": PrebuiltImage("3.10", "2025-10-04"),
    "pytorch-tpu.2-1.cp310": PrebuiltImage("3.8", "2025-10-23"),
    "pytorch-xla.2-0.py310": PrebuiltImage("3.10", "2025-03-15"),
    "pytorch-gpu.2-0.py310": PrebuiltImage("3.10", "2025-03-15"),
    "pytorch-tpu.2-0": PrebuiltImage("3.8", "2025-05-15"),
    "pytorch-gpu.1-13.py310": PrebuiltImage("3.10", "2025-05-15"),
    "pytorch-gpu.1-13": PrebuiltImage("3.7", "2024-12-08"),
    "pytorch-gpu.1-12.py310": PrebuiltImage("3.10", "2025-05-15"),
    "pytorch-gpu.1-12": PrebuiltImage("3.7", "2024-09-01"),
    "pytorch-xla.1-11": PrebuiltImage("3.7", "2024-09-01"),
    "pytorch-gpu.1-11": PrebuiltImage("3.7", "2024-09-01"),
    "pytorch-xla.1-10": PrebuiltImage("3.7", "2024-09-01"),
    "pytorch-gpu.1-10": PrebuiltImage("3.7", "2024-09-01"),
    "pytorch-xla.1-9": PrebuiltImage("3.7", "2024-09-01"),
    "pytorch-gpu.1-9": PrebuiltImage("3.7", "2024-09-01"),
    "pytorch-xla.1-7": PrebuiltImage("3.7", "2024-09-01"),
    "pytorch-gpu.1-7": PrebuiltImage("3.7", "2024-09-01"),
    "pytorch-xla.1-6": PrebuiltImage("3.7", "2024-09-01"),
    "pytorch-gpu.1-6": PrebuiltImage("3.7", "2024-09-01"),
    "pytorch-cpu.1-4": PrebuiltImage("3.7", "2024-09-01"),
    "pytorch-gpu.1-4": PrebuiltImage("3.7", "2024-09-01"),
    "sklearn-cpu.1-6": PrebuiltImage("3.10", "2026-07-11"),
    "sklearn-gpu.1-6": PrebuiltImage("3.10", "2026-07-11"),
    "sklearn-cpu.1-0": PrebuiltImage("3.10", "2025-06-30"),
    "sklearn-gpu.1-0": PrebuiltImage("3.10", "2025-06-30"),
    "scikit-learn-cpu.0-23": PrebuiltImage("3.7", "2024-09-01"),
    "xgboost-cpu.2-1": PrebuiltImage("3.10", "2026-07-11"),
    "xgboost-gpu.2-1": PrebuiltImage("3.10", "2026-07-11"),
    "xgboost-cpu.1-6": PrebuiltImage("3.10", "2025-06-30"),
    "xgboost-gpu.1-6": PrebuiltImage("3.10", "2025-06-30"),
    "xgboost-cpu.1-1": PrebuiltImage("3.7", "2024-11-15"),
    "ray-cpu.2-47.py311": PrebuiltImage("3.11", "2027-07-28"),
    "ray-gpu.2-47.py311": PrebuiltImage("3.11", "2027-07-28"),
    "ray-cpu.2-42.py311": PrebuiltImage("3.11", "2027-03-01"),
    "ray-gpu.2-42.py311": PrebuiltImage("3.11", "2027-03-01"),
    "ray-cpu.2-42.py310": PrebuiltImage("3.10", "2027-03-01"),
    "ray-gpu.2-42.py310": PrebuiltImage("3.10", "2027-03-01"),
    "ray-cpu.2-33.py310": PrebuiltImage("3.10", "2026-09-16"),
    "ray-gpu.2-33.py310": PrebuiltImage("3.10", "2026-09-16"),
    "ray-cpu.2-9.py310": PrebuiltImage("3.10", "2026-05-07"),
    "ray-gpu.2-9.py310": PrebuiltImage("3.10", "2026-05-07"),
}
"""Image name -> what is known of it."""
