"""Which images Vertex AI runs Python packages on: its prebuilt training containers, by the tag latest alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from localcloud.vertex.problems import REQUIRED, Problem

_URI = re.compile(r"(?:us|europe|asia)-docker\.pkg\.dev/vertex-ai/training/(?P<name>[^:@]+)(?::latest)?")


def executor_image_problems(uri: str | None, path: str) -> Iterator[Problem]:
    """Yield what is wrong with the `executorImageUri` of a Python package, whose field has the `path`."""
    found = _URI.fullmatch(uri or "")
    if not uri:
        yield (path, REQUIRED)
    elif found is None or found["name"] not in image_names():
        yield (
            path,
            f'The executor image "{uri}" is not supported. Use a prebuilt container for training with the tag latest, '
            'such as "us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest", or a `container_spec`.',
        )


@cache
def image_names() -> frozenset[str]:
    """Return the names of the prebuilt images, which `executor_images.json` lists with their source."""
    data = json.loads(Path(__file__).with_name("executor_images.json").read_text(encoding="utf-8"))
    return frozenset(data["names"])
