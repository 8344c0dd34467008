"""Which prebuilt images hold the TensorFlow of an AI Platform runtime version.

Rule: runtime version X.Y holds TensorFlow X.Y (reference of projects.jobs v1, field tpuTfVersion). Google
publishes no table from runtime to image; the names are those of `prebuilt_images`.
"""

from __future__ import annotations

import re

from trainops.jobspec.tables.prebuilt_images import PREBUILT_IMAGES, REPOSITORY

_NAME = re.compile(r"tf-(?P<kind>cpu|gpu|tpu)\.(?P<major>\d+)-(?P<minor>\d+)(?:\.\w+)?")


def _runtimes() -> dict[str, dict[str, dict[str, str]]]:
    found: dict[str, dict[str, dict[str, str]]] = {}
    for name, image in PREBUILT_IMAGES.items():
        match = _NAME.fullmatch(name)
        if match is not None:
            kinds = found.setdefault(f"{match['major']}.{match['minor']}", {}).setdefault(match["kind"], {})
            kinds[image.python] = name
    return found


RUNTIMES: dict[str, dict[str, dict[str, str]]] = _runtimes()
"""Runtime version -> kind (cpu, gpu, tpu) -> Python version -> image name."""

LEGACY_REPOSITORY = "gcr.io/cloud-aiplatform/training"
"""Where AI Platform's own prebuilt images were."""


def image_uri(name: str) -> str:
    """URI of a prebuilt image by its name."""
    return f"{REPOSITORY}/{name}:latest"
