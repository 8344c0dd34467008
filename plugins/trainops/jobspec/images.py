"""Which container image a pool runs: its own, the environment's, or the prebuilt one of the runtime version."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainops.jobspec.notes import Notebook
from trainops.jobspec.pools import Pool
from trainops.jobspec.tables.prebuilt_images import PREBUILT_IMAGES
from trainops.jobspec.tables.runtimes import LEGACY_REPOSITORY, RUNTIMES, image_uri
from trainops.jobspec.tables.substitutes import RETIRED_PYTHONS, RETIRED_RUNTIMES, TPU_RUNTIMES
from trainops.jobspec.training_input import TrainingInput

_TARGET = "jobSpec.workerPoolSpecs[].pythonPackageSpec.executorImageUri"
_PREBUILT = re.compile(r"(?:us|europe|asia)-docker\.pkg\.dev/vertex-ai/training/(?P<name>[^:@]+)(?::latest)?")
_OWN_IMAGE = "set an image in the environment, or masterConfig.imageUri"


@dataclass(frozen=True)
class Images:
    """Images of the environment; each that is given goes before the runtime version's.

    :param cpu: for pools without accelerators.
    :param gpu: for pools with GPUs.
    :param tpu: for TPU machines.
    """

    cpu: str | None = None
    gpu: str | None = None
    tpu: str | None = None

    def of_kind(self, kind: str) -> str | None:
        """Return the image for `cpu`, `gpu` or `tpu` pools."""
        return {"cpu": self.cpu, "gpu": self.gpu, "tpu": self.tpu}[kind]


def own_image(pool: Pool, spec: TrainingInput) -> tuple[str, str] | None:
    """Return the custom image of a pool, and the key that it comes from: its own, else the master's."""
    if pool.config.image_uri is not None:
        return pool.config.image_uri, f"{pool.config_key}.imageUri"
    if spec.master_config is not None and spec.master_config.image_uri is not None:
        return spec.master_config.image_uri, "masterConfig.imageUri"
    return None


def check_image_choice(spec: TrainingInput, notebook: Notebook) -> None:
    """Refuse a job that names both a runtime version and a custom image for its master."""
    custom = spec.master_config is not None and spec.master_config.image_uri is not None
    if custom and spec.runtime_version is not None:
        raise notebook.error(
            "runtimeVersion",
            "excludes masterConfig.imageUri",
            value=spec.runtime_version,
            next_step="keep runtimeVersion for a prebuilt image, or masterConfig.imageUri for a container of yours",
        )
    if custom and spec.python_version is not None:
        text = "not sent: the Python is that of masterConfig.imageUri"
        notebook.changed("pythonVersion", spec.python_version, "", text)


def custom_image(uri: str, key: str, target: str, notebook: Notebook) -> str:
    """Return the image to send for a custom image; AI Platform's own prebuilt ones become Vertex AI's."""
    name = uri.removeprefix(f"{LEGACY_REPOSITORY}/").split(":", 1)[0]
    if uri.startswith(f"{LEGACY_REPOSITORY}/") and name in PREBUILT_IMAGES:
        reason = f"{LEGACY_REPOSITORY} belongs to AI Platform"
        notebook.substituted(key, uri, image_uri(name), target, reason, alternatives=[image_uri(name)])
        _note_availability(key, uri, name, target, notebook)
        return image_uri(name)
    notebook.mapped(key, uri, target)
    match = _PREBUILT.fullmatch(uri)
    if match is not None and match["name"] in PREBUILT_IMAGES:
        _note_availability(key, uri, match["name"], target, notebook)
    return uri


def executor_image(pool: Pool, spec: TrainingInput, images: Images, notebook: Notebook) -> str:
    """Return the image that runs the Python package of a pool without a custom image.

    :raises ConfigError: no image holds this runtime version, Python version and kind of machine.
    """
    kind = pool.equipment.image_kind
    given = images.of_kind(kind)
    if given is None:
        return image_uri(_runtime_image(spec, kind, notebook))
    for key, value in (("runtimeVersion", spec.runtime_version), ("pythonVersion", spec.python_version)):
        if value is not None:
            notebook.changed(key, value, _TARGET, f"the environment's {kind} image is taken instead: {given}")
    if spec.runtime_version is None:
        notebook.defaulted("runtimeVersion", None, _TARGET, f"the environment's {kind} image: {given}")
    return given


def _runtime_image(spec: TrainingInput, kind: str, notebook: Notebook) -> str:
    wanted = spec.runtime_version or ""
    runtime = _runtime_with_image(wanted, kind, notebook)
    names = RUNTIMES[runtime][kind]
    python = _python(spec.python_version, runtime, list(names), replaced=runtime != wanted, notebook=notebook)
    name = names[python]
    notebook.mapped("runtimeVersion", wanted, _TARGET, f"{kind}: {image_uri(name)}")
    _note_availability("runtimeVersion", wanted, name, _TARGET, notebook)
    return name


def _runtime_with_image(wanted: str, kind: str, notebook: Notebook) -> str:
    with_image = [version for version, kinds in RUNTIMES.items() if kind in kinds]
    if wanted in with_image:
        return wanted
    substitutes = TPU_RUNTIMES if kind == "tpu" else RETIRED_RUNTIMES
    if wanted in substitutes:
        reason = f"Vertex AI has no {kind} image of runtime version {wanted}"
        notebook.substituted("runtimeVersion", wanted, substitutes[wanted], _TARGET, reason, with_image)
        return substitutes[wanted]
    raise notebook.error(
        "runtimeVersion",
        f"no {kind} image has this runtime version",
        value=wanted,
        allowed=with_image,
        next_step=f"choose one of these, or {_OWN_IMAGE}",
    )


def _python(wanted: str | None, runtime: str, pythons: list[str], *, replaced: bool, notebook: Notebook) -> str:
    """Return the Python of the image: the one asked for, else 3.7 where there is one, as AI Platform had."""
    usual = "3.7" if "3.7" in pythons else pythons[0]
    if wanted is None:
        notebook.defaulted("pythonVersion", None, _TARGET, f"Python {usual}")
        return usual
    if wanted in pythons:
        notebook.mapped("pythonVersion", wanted, _TARGET)
        return wanted
    retired = runtime.startswith("1.") and wanted in RETIRED_PYTHONS
    if retired or (replaced and wanted == "3.7"):
        reason = f"no image of runtime version {runtime} has Python {wanted}"
        notebook.substituted("pythonVersion", wanted, usual, _TARGET, reason, pythons)
        return usual
    raise notebook.error(
        "pythonVersion",
        f"no image of runtime version {runtime} has this Python",
        value=wanted,
        allowed=pythons,
        next_step=f"choose one of these, or {_OWN_IMAGE}",
    )


def _note_availability(key: str, value: str, name: str, target: str, notebook: Notebook) -> None:
    last_day = PREBUILT_IMAGES[name].available_until
    text = f"last day of availability of {name}: {last_day}; after it Vertex AI may refuse the image"
    notebook.mapped(key, value, target, f"{text}; {_OWN_IMAGE} to be sure")
