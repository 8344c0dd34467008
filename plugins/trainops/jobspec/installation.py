"""How a container installs a Python package itself, since Vertex AI runs packages on its prebuilt images alone.

Source: `executorImageUri` of PythonPackageSpec, https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

_PYTHON = ("python3", "-c")
_END = "--"


def command(module: str, package_uris: Sequence[str]) -> list[str]:
    """Return the command of a container that installs packages and runs `module` with the container's `args`."""
    return [*_PYTHON, program(), module, *package_uris, _END]


def installed_packages(container: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the URIs that a `containerSpec` installs; none when its command is not of `command`'s making."""
    words = container.get("command", [])
    if tuple(words[:2]) != _PYTHON or words[-1] != _END:
        return ()
    return tuple(words[4:-1])


@cache
def program() -> str:
    """Return the text of `install_and_run.py`, which the command carries."""
    return Path(__file__).with_name("install_and_run.py").read_text(encoding="utf-8")
