"""What each replica runs: a Python package on an executor image, or a container."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainops.jobspec import installation, reduction_server
from trainops.jobspec.images import (
    Images,
    check_image_choice,
    custom_image,
    environment_image,
    executor_uri,
    own_image,
    prebuilt_name,
    runtimes_of,
)
from trainops.jobspec.limits import check_arguments, check_packages
from trainops.jobspec.notes import Notebook
from trainops.jobspec.pools import Pool
from trainops.jobspec.tables.runtimes import LEGACY_REPOSITORY
from trainops.jobspec.training_input import TrainingInput

INCOMPLETE = "the job is not complete"
"""How the problem of a partial job begins."""

_POOLS = "jobSpec.workerPoolSpecs[]"
_NAMES = {"region": "region", "pythonModule": "python_module", "packageUris": "package_uris"}


def check_complete(spec: TrainingInput, pools: list[Pool], images: Images, notebook: Notebook) -> None:
    """Refuse a partial job, naming all its holes at once.

    A container needs no module; a job with a module, packages, or a pool without an image of its own does.
    """
    packaged = [pool for pool in pools if _runs_package(pool, spec)]
    if all(own_image(pool, spec) is not None for pool in packaged):
        _check_whole_package(spec, notebook)
    holes = [] if spec.region else ["region"]
    if packaged:
        holes += [key for key in ("pythonModule", "packageUris") if not getattr(spec, _NAMES[key])]
    needs_runtime = [pool for pool in packaged if own_image(pool, spec) is None and not _given(pool, images)]
    if needs_runtime and spec.runtime_version is None:
        holes.append("runtimeVersion (or masterConfig.imageUri)")
    if holes:
        raise notebook.error(
            holes[0].split(" ", 1)[0],
            f"{INCOMPLETE}: {', '.join(holes)} missing",
            next_step=_completed("runtimeVersion" in holes[-1], needs_runtime),
        )


def _completed(runtime: bool, pools: list[Pool]) -> str:
    """Say how a partial job is completed, with the runtime versions that its machines have."""
    kinds = dict.fromkeys(pool.equipment.image_kind for pool in pools if runtime)
    told = [f"runtime versions with a {kind} image: {', '.join(runtimes_of(kind))}" for kind in kinds]
    return "add them to the job" + (f" ({'; '.join(told)})" if told else "")


def _check_whole_package(spec: TrainingInput, notebook: Notebook) -> None:
    """Refuse half a package on containers, which need none."""
    given = [key for key in ("packageUris", "pythonModule") if getattr(spec, _NAMES[key])]
    if len(given) != 1:
        return
    (other,) = {"packageUris", "pythonModule"} - set(given)
    raise notebook.error(
        given[0],
        f"the job runs a container, and has {given[0]} without {other}",
        value=getattr(spec, _NAMES[given[0]]),
        next_step=f"leave {given[0]} out, and the container runs as it is, or give {other} too, and it installs the "
        "packages and runs the module",
    )


def programs(
    spec: TrainingInput, pools: list[Pool], images: Images, env: Mapping[str, str], notebook: Notebook
) -> list[dict[str, Any]]:
    """Return the task of each pool: `pythonPackageSpec` or `containerSpec`.

    :raises ConfigError: fields that exclude each other, a limit passed, or no image.
    """
    check_image_choice(spec, notebook)
    _check_container_fields(spec, pools, notebook)
    check_packages(spec, notebook)
    _note_job_wide(spec, pools, notebook)
    variables = [{"name": name, "value": value} for name, value in env.items()]
    return [_program(pool, spec, images, variables, notebook) for pool in pools]


def _runs_package(pool: Pool, spec: TrainingInput) -> bool:
    if reduction_server.replaces(pool, spec):
        return False
    return own_image(pool, spec) is None or bool(spec.python_module or spec.package_uris)


def _given(pool: Pool, images: Images) -> bool:
    return images.of_kind(pool.equipment.image_kind) is not None


def _check_container_fields(spec: TrainingInput, pools: list[Pool], notebook: Notebook) -> None:
    for pool in pools:
        for field, value in (
            ("containerCommand", pool.config.container_command),
            ("containerArgs", pool.config.container_args),
        ):
            key = f"{pool.config_key}.{field}"
            if value is None:
                continue
            if _runs_package(pool, spec):
                raise notebook.error(key, "only a custom container has it", value=value, next_step=_CONTAINER)
            if spec.args:
                raise notebook.error("args", f"excludes {key}", value=spec.args, next_step=f"move them into {key}")


_CONTAINER = "set imageUri and leave pythonModule and packageUris out, or write args"


def _note_job_wide(spec: TrainingInput, pools: list[Pool], notebook: Notebook) -> None:
    packaged = any(_runs_package(pool, spec) for pool in pools)
    for key in ("packageUris", "pythonModule"):
        value = getattr(spec, _NAMES[key])
        if value is not None and not packaged:
            notebook.changed(key, value, "", "empty, and the job runs a container: not sent")
    if spec.job_dir is not None:
        text = "also passed to the program as --job-dir; AIP_MODEL_DIR and the like lie below it"
        notebook.mapped("jobDir", spec.job_dir, "jobSpec.baseOutputDirectory.outputUriPrefix", text)
    _note_chief(spec, notebook)


def _note_chief(spec: TrainingInput, notebook: Notebook) -> None:
    value = spec.use_chief_in_tf_config
    if value is True:
        notebook.mapped("useChiefInTfConfig", value, "", "not sent: TF_CONFIG of Vertex AI says chief")
    elif value is False:
        text = "not sent: TF_CONFIG of Vertex AI says chief where AI Platform said master"
        notebook.changed("useChiefInTfConfig", value, "", text)


def _program(
    pool: Pool, spec: TrainingInput, images: Images, env: list[dict[str, str]], notebook: Notebook
) -> dict[str, Any]:
    if reduction_server.replaces(pool, spec):
        return reduction_server.program(pool, notebook)
    _note_tpu_version(pool, spec, notebook)
    own = own_image(pool, spec)
    if not _runs_package(pool, spec):
        assert own is not None
        return {"containerSpec": _container(pool, spec, own, env, notebook)}
    return _package(pool, spec, images, env, notebook)


def _package(
    pool: Pool, spec: TrainingInput, images: Images, env: list[dict[str, str]], notebook: Notebook
) -> dict[str, Any]:
    assert spec.python_module is not None
    assert spec.package_uris is not None
    image = _package_image(pool, spec, images, notebook)
    kind = "containerSpec" if prebuilt_name(image) is None else "pythonPackageSpec"
    _note_package(spec, kind, notebook)
    rest = _arguments(pool, spec, spec.args, kind, notebook) | ({"env": env} if env else {})
    if kind == "containerSpec":
        command = installation.command(spec.python_module, spec.package_uris)
        return {kind: {"imageUri": image, "command": command} | rest}
    package = {"packageUris": spec.package_uris, "pythonModule": spec.python_module}
    return {kind: {"executorImageUri": executor_uri(image)} | package | rest}


def _package_image(pool: Pool, spec: TrainingInput, images: Images, notebook: Notebook) -> str:
    own = own_image(pool, spec)
    if own is None:
        return environment_image(pool, spec, images, notebook)
    packaged = prebuilt_name(own[0]) is not None or own[0].startswith(f"{LEGACY_REPOSITORY}/")
    field = "pythonPackageSpec.executorImageUri" if packaged else "containerSpec.imageUri"
    return custom_image(*own, pool, f"{pool.target}.{field}", notebook)


def _note_package(spec: TrainingInput, kind: str, notebook: Notebook) -> None:
    if kind == "pythonPackageSpec":
        for key in ("packageUris", "pythonModule"):
            notebook.mapped(key, getattr(spec, _NAMES[key]), f"{_POOLS}.{kind}.{key}")
        return
    why = "Vertex AI runs Python packages only on its prebuilt images; on others the container installs them itself"
    notebook.mapped("packageUris", spec.package_uris, f"{_POOLS}.{kind}.command", why)
    notebook.mapped("pythonModule", spec.python_module, f"{_POOLS}.{kind}.command", "run once they are installed")


def _container(
    pool: Pool, spec: TrainingInput, own: tuple[str, str], env: list[dict[str, str]], notebook: Notebook
) -> dict[str, Any]:
    target, config = f"{pool.target}.containerSpec", pool.config
    container: dict[str, Any] = {"imageUri": custom_image(*own, pool, f"{target}.imageUri", notebook)}
    if config.container_command is not None:
        notebook.mapped(f"{pool.config_key}.containerCommand", config.container_command, f"{target}.command")
        container |= {"command": config.container_command} if config.container_command else {}
    if config.container_args is not None:
        notebook.mapped(f"{pool.config_key}.containerArgs", config.container_args, f"{target}.args")
    args = spec.args if config.container_args is None else config.container_args
    return container | _arguments(pool, spec, args, "containerSpec", notebook) | ({"env": env} if env else {})


def _arguments(
    pool: Pool, spec: TrainingInput, args: list[str] | None, kind: str, notebook: Notebook
) -> dict[str, Any]:
    """Return the arguments of a replica; --job-dir stands last, as AI Platform put it."""
    if spec.args is not None:
        notebook.mapped("args", spec.args, f"{_POOLS}.{kind}.args", "the same for every replica")
    found = list(args or [])
    if spec.job_dir is not None:
        if any(arg == "--job-dir" or arg.startswith("--job-dir=") for arg in found):
            notebook.changed("jobDir", spec.job_dir, "", "args already hold --job-dir: it is not added again")
        else:
            found.append(f"--job-dir={spec.job_dir}")
    key = "args" if pool.config.container_args is None else f"{pool.config_key}.containerArgs"
    check_arguments(found, key, notebook)
    return {"args": found} if found else {}


def _note_tpu_version(pool: Pool, spec: TrainingInput, notebook: Notebook) -> None:
    version = pool.config.tpu_tf_version
    if version is None:
        return
    key = f"{pool.config_key}.tpuTfVersion"
    if pool.equipment.image_kind != "tpu" or own_image(pool, spec) is None:
        raise notebook.error(
            key, "only a TPU pool with a custom container has it", value=version, next_step="leave it out"
        )
    notebook.changed(key, version, "", "not sent: the program runs on the TPU VM with the TensorFlow of its image")
