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


_LAST_RUNTIME = (2, 11)


def ai_platform_pythons(runtime: str) -> list[str]:
    """Return the Python versions that a runtime of AI Platform had; none for what was no runtime of it.

    Source: reference of projects.jobs v1, field pythonVersion.
    """
    major, _, minor = runtime.partition(".")
    version = (int(major), int(minor))
    if version > _LAST_RUNTIME:
        return []
    had = (("2.7", version <= (1, 15)), ("3.5", (1, 4) <= version < (1, 15)), ("3.7", version >= (1, 15)))
    return [python for python, was_there in had if was_there]


def image_uri(name: str) -> str:
    """URI of a prebuilt image by its name."""
    return f"{REPOSITORY}/{name}:latest"
