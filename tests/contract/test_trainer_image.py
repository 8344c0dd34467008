"""The local cloud tells pip what the trainer's image tells it, so a package that installs here installs there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from localcloud.vertex.environment import IMAGE_PIP

DOCKERFILE = Path(__file__).resolve().parents[2] / "trainer" / "Dockerfile"


@pytest.mark.parametrize("name", ["PIP_NO_INDEX", "PIP_NO_BUILD_ISOLATION", "PIP_NO_WARN_CONFLICTS"])
def test_pip_is_told_the_same_in_the_image_and_on_the_laptop(name: str) -> None:
    assert re.findall(rf"\b{name}=(\S+)", DOCKERFILE.read_text(encoding="utf-8")) == [IMAGE_PIP[name]]


def test_what_builds_the_package_is_in_the_image() -> None:
    assert "flit_core==" in DOCKERFILE.with_name("requirements.txt").read_text(encoding="utf-8")
