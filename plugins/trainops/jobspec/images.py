"""Which container image a pool runs: its own, the environment's, or the prebuilt one of the runtime version."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainops.errors import ConfigError
from trainops.jobspec.notes import Notebook
from trainops.jobspec.pools import Pool
from trainops.jobspec.tables.prebuilt_images import PREBUILT_IMAGES
from trainops.jobspec.tables.runtimes import LEGACY_REPOSITORY, RUNTIMES, ai_platform_pythons, image_uri
from trainops.jobspec.tables.substitutes import RETIRED_PYTHONS, RETIRED_RUNTIMES, TPU_RUNTIMES
from trainops.jobspec.training_input import TrainingInput

ENVIRONMENT = "environment"
"""Source of errors that blame the environment's images, not the job."""

_TARGET = "jobSpec.workerPoolSpecs[].pythonPackageSpec.executorImageUri"
_CONTAINER = "jobSpec.workerPoolSpecs[].containerSpec.imageUri"
_PREBUILT = re.compile(r"(?:us|europe|asia)-docker\.pkg\.dev/vertex-ai/training/(?P<name>[^:@]+)(?::latest)?")
_REPOSITORY = re.compile(r"[a-z0-9][a-z0-9._/-]*(?::[0-9]+/[a-z0-9._/-]+)?(?:[:@].*)?$")
"""Names of images are in lowercase, up to tag or digest: one with capitals is a placeholder.

Source: https://github.com/distribution/reference, `regexp.go`.
"""
_SERVES = {"cpu": ("cpu", "xla", "gpu"), "gpu": ("gpu",), "tpu": ("tpu",)}
"""Kind of pool -> kinds of prebuilt images that use its machines; images called xla are PyTorch's for CPUs."""
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


def prebuilt_name(uri: str) -> str | None:
    """Return the name of a prebuilt image of Vertex AI; None for any other image, and for another tag than latest."""
    match = _PREBUILT.fullmatch(uri)
    return match["name"] if match is not None and match["name"] in PREBUILT_IMAGES else None


def executor_uri(uri: str) -> str:
    """Return the URI of a prebuilt image with its tag, which Vertex AI wants to see."""
    return uri if uri.endswith(":latest") else f"{uri}:latest"


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


def custom_image(uri: str, key: str, pool: Pool, target: str, notebook: Notebook) -> str:
    """Return the image to send for a custom image; AI Platform's own prebuilt ones become Vertex AI's.

    :raises ConfigError: it is no name of an image, or a prebuilt one that cannot use the pool's machines.
    """
    if _REPOSITORY.match(uri) is None:
        step = "write it like us-docker.pkg.dev/my-project/my-repository/my-image:tag, in lowercase up to the tag"
        raise notebook.error(key, "this is no name of an image", value=uri, next_step=step)
    name = uri.removeprefix(f"{LEGACY_REPOSITORY}/").split(":", 1)[0]
    is_legacy = uri.startswith(f"{LEGACY_REPOSITORY}/") and name in PREBUILT_IMAGES
    _check_kind(image_uri(name) if is_legacy else uri, pool.equipment.image_kind, notebook.source, key, uri)
    if is_legacy:
        reason = f"{LEGACY_REPOSITORY} belongs to AI Platform"
        notebook.substituted(key, uri, image_uri(name), target, reason, alternatives=[image_uri(name)])
        _note_availability(key, uri, name, target, notebook)
        return image_uri(name)
    notebook.mapped(key, uri, target)
    prebuilt = prebuilt_name(uri)
    if prebuilt is not None:
        _note_availability(key, uri, prebuilt, target, notebook)
    return uri


def environment_image(pool: Pool, spec: TrainingInput, images: Images, notebook: Notebook) -> str:
    """Return the image that runs the Python package of a pool without a custom image.

    :raises ConfigError: no image holds this runtime version, Python version and kind of machine, or the environment's
        is a prebuilt one of another kind.
    """
    kind = pool.equipment.image_kind
    given = images.of_kind(kind)
    if given is None:
        return image_uri(_runtime_image(spec, kind, notebook))
    _check_kind(given, kind, ENVIRONMENT, f"image.{kind}", given)
    target = _CONTAINER if prebuilt_name(given) is None else _TARGET
    for key, value in (("runtimeVersion", spec.runtime_version), ("pythonVersion", spec.python_version)):
        if value is not None:
            notebook.changed(key, value, target, f"the environment's {kind} image is taken instead: {given}")
    if spec.runtime_version is None:
        notebook.defaulted("runtimeVersion", None, target, f"the environment's {kind} image: {given}")
    return given


def _check_kind(image: str, kind: str, source: str, key: str, given: str) -> None:
    """Refuse a prebuilt image of another kind; `given` is what stood at `key` of `source` for it."""
    name = prebuilt_name(image)
    if name is None or _kind_of(name) in _SERVES[kind]:
        return
    raise ConfigError(
        f"this prebuilt image cannot use the machines of {kind} pools",
        source=source,
        key=key,
        value=given,
        allowed=[image_uri(other) for other in PREBUILT_IMAGES if _kind_of(other) in _SERVES[kind]],
        next_step=f"set an image for {kind} pools there",
    )


def _kind_of(name: str) -> str:
    return name.split(".", 1)[0].rsplit("-", 1)[-1]


def _runtime_image(spec: TrainingInput, kind: str, notebook: Notebook) -> str:
    wanted = spec.runtime_version or ""
    runtime = _runtime_with_image(wanted, kind, notebook)
    names = RUNTIMES[runtime][kind]
    python = _python(spec, runtime, list(names), notebook)
    name = names[python]
    notebook.mapped("runtimeVersion", wanted, _TARGET, f"{kind}: {image_uri(name)}")
    _note_availability("runtimeVersion", wanted, name, _TARGET, notebook)
    return name


def runtimes_of(kind: str) -> list[str]:
    """Return the runtime versions with an image for `cpu`, `gpu` or `tpu` pools."""
    return [version for version, kinds in RUNTIMES.items() if kind in kinds]


def _runtime_with_image(wanted: str, kind: str, notebook: Notebook) -> str:
    with_image = runtimes_of(kind)
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


def _python(spec: TrainingInput, runtime: str, pythons: list[str], notebook: Notebook) -> str:
    """Return the Python of the image: the one asked for, else 3.7 where there is one, as AI Platform had."""
    wanted, asked = spec.python_version, spec.runtime_version or ""
    usual = "3.7" if "3.7" in pythons else pythons[0]
    if wanted is None:
        _note_default_python(usual, asked, notebook)
        return usual
    if wanted in pythons:
        notebook.mapped("pythonVersion", wanted, _TARGET)
        return wanted
    retired = runtime.startswith("1.") and wanted in RETIRED_PYTHONS
    if retired or (runtime != asked and wanted == "3.7"):
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


def _note_default_python(usual: str, asked: str, notebook: Notebook) -> None:
    """Note the Python of a job that names none; one that its runtime never had is a change."""
    had = ai_platform_pythons(asked)
    others = " and ".join(python for python in had if python != usual)
    if had and usual not in had:
        text = f"Python {usual}: runtime version {asked} had {others} only"
        notebook.changed("pythonVersion", None, _TARGET, text)
    else:
        text = f"Python {usual}" + (f"; runtime version {asked} had {others} too" if others else "")
        notebook.defaulted("pythonVersion", None, _TARGET, text)


def _note_availability(key: str, value: str, name: str, target: str, notebook: Notebook) -> None:
    last_day = PREBUILT_IMAGES[name].available_until
    text = f"last day of availability of {name}: {last_day}; after it Vertex AI may refuse the image"
    notebook.mapped(key, value, target, f"{text}; {_OWN_IMAGE} to be sure")
