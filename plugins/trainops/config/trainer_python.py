"""The Python that the trainer needs, and whether the image of a job has it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from trainops.errors import ConfigError
from trainops.jobspec.images import ENVIRONMENT, prebuilt_name
from trainops.jobspec.tables.prebuilt_images import PREBUILT_IMAGES
from trainops.settings import Settings, trainer_folder

_LAST_PATCH = 99


def check_python(job: Mapping[str, Any], settings: Settings, runtime: str | None) -> None:
    """Refuse a prebuilt image whose Python cannot install the trainer; of other images nothing is known.

    :param job: the CustomJob.
    :param runtime: the TrainingInput's runtime version, which is blamed for an image that the environment did not set.
    :raises ConfigError: source `environment` when its image is the cause, else the TrainingInput's key.
    """
    needed = trainer_python()
    for image in _images(job):
        name = prebuilt_name(image)
        if name is None or needed.contains(f"{PREBUILT_IMAGES[name].python}.{_LAST_PATCH}"):
            continue
        of_environment = [kind for kind in ("cpu", "gpu") if _same(getattr(settings.image, kind), image)]
        own = "runtimeVersion" if runtime is not None else "masterConfig.imageUri"
        raise ConfigError(
            f"the trainer needs Python {needed}, and this prebuilt image has {PREBUILT_IMAGES[name].python}",
            source=ENVIRONMENT if of_environment else "",
            key=f"image.{of_environment[0]}" if of_environment else own,
            value=image if of_environment or runtime is None else runtime,
            next_step="build the trainer's own image from trainer/Dockerfile, and name it in the environment's image",
        )


def trainer_python() -> SpecifierSet:
    """Return the `requires-python` of the trainer; any Python when it says none, or cannot be read (packaging tells).

    :raises ConfigError: it is no such specifier.
    """
    file = trainer_folder() / "pyproject.toml"
    try:
        text = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {}).get("requires-python", "")
        return SpecifierSet(str(text))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        return SpecifierSet()
    except InvalidSpecifier as error:
        key, step = "project.requires-python", "write it like >=3.11"
        raise ConfigError(
            "this is no range of versions", source=str(file), key=key, value=text, next_step=step
        ) from error


def _images(job: Mapping[str, Any]) -> Iterator[str]:
    for pool in job["jobSpec"]["workerPoolSpecs"]:
        if "pythonPackageSpec" in pool:
            yield pool["pythonPackageSpec"]["executorImageUri"]


def _same(given: str | None, image: str) -> bool:
    return given is not None and image in {given, f"{given}:latest"}
