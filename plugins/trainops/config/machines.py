"""The machines of a run: what the experiment asks for, changed by the conf, checked before anything is submitted."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from trainops import naming
from trainops.config.conf import CONF, HARDWARE, RunConf
from trainops.config.gpu_pools import CPU, GpuPools, Provisioning
from trainops.config.trainer_python import check_python
from trainops.errors import ConfigError
from trainops.jobspec.images import ENVIRONMENT
from trainops.jobspec.tables.machines import CLOUD_TPU_TYPES, GPU_TYPES, TPU_NAMES
from trainops.jobspec.training_input import TrainingInput, parse_training_input
from trainops.jobspec.translate import Images, Translation, translate
from trainops.settings import Settings

SET_BY_TRAINOPS = ("packageUris", "pythonModule", "args", "jobDir")
"""Keys of a TrainingInput that each run fills in itself."""

STRATEGIES: dict[Provisioning, str] = {"standard": "STANDARD", "spot": "SPOT", "flex_start": "FLEX_START"}
"""What Vertex AI calls the provisioning models of gpu_pools.yaml."""

_CONF_KEYS = {
    "type": "accelerator_type",
    "count": "accelerator_count",
    "masterType": "machine_type",
    "workerType": "machine_type",
    "workerCount": "worker_count",
    "region": "region",
}


def parse_input(data: Mapping[str, Any], *, source: str, key: str) -> dict[str, Any]:
    """Return a TrainingInput of a config file in REST spelling.

    :param key: where it stands in the file.
    :raises ConfigError: it is no TrainingInput, or sets what each run sets itself.
    """
    try:
        parsed = parse_training_input(data, source)
    except ConfigError as error:
        raise moved(error, source, f"{key}.{error.key}" if error.key else key) from error
    spec = rest(parsed)
    for name in SET_BY_TRAINOPS:
        if name in spec:
            raise ConfigError(
                "each run sets this itself",
                source=source,
                key=f"{key}.{name}",
                value=spec[name],
                next_step="remove it: Trainops packages and starts its own trainer",
            )
    return spec


def rest(parsed: TrainingInput) -> dict[str, Any]:
    """Return `parsed` as JSON in REST spelling, without what is not set."""
    return parsed.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)


def with_conf(spec: Mapping[str, Any], conf: RunConf) -> dict[str, Any]:
    """Return the TrainingInput `spec` with the machines that the conf asks for.

    :raises ConfigError: the conf changes machines that a fixed scale tier decides, or counts GPUs of no type.
    """
    changed = copy.deepcopy(dict(spec))
    given = [key for key in HARDWARE if getattr(conf, key) is not None]
    if conf.region is not None:
        changed["region"] = conf.region
    machine_keys = [key for key in given if key != "region"]
    if machine_keys and str(changed.get("scaleTier", "BASIC")) != "CUSTOM":
        raise ConfigError(
            f"the experiment's scale tier {changed.get('scaleTier', 'BASIC')} decides the machines",
            source=CONF,
            key=machine_keys[0],
            value=getattr(conf, machine_keys[0]),
            next_step="set scaleTier: CUSTOM and masterType in the experiment first",
        )
    _set_workers(changed, conf)
    for role in _roles(changed):
        _set_machine(changed, role, conf)
    return changed


def check_machines(
    spec: Mapping[str, Any], settings: Settings, pools: GpuPools, *, source: str, key: str, conf: RunConf | None = None
) -> Translation:
    """Translate `spec` with a package that stands for the trainer, and see whether its GPUs have a pool.

    :param conf: what changed `spec`; it is blamed when a machine does not exist or fit.
    :raises ConfigError: a machine or accelerator does not exist, does not fit, or has no pool that could hold it; or
        the image's Python is too old for the trainer.
    """
    try:
        translation = preview(spec, settings, source=source)
        check_python(translation.job, settings, spec.get("runtimeVersion"))
    except ConfigError as error:
        if error.source == ENVIRONMENT:
            raise moved(error, f"environment {settings.name}", error.key) from error
        raise _blamed(_with_image_hint(error, settings), source, key, conf or RunConf()) from error
    pools.ask(asked_of_queue(translation, pools), translation.region, provisioning(translation.job))
    return translation


def asked_of_queue(translation: Translation, pools: GpuPools) -> dict[str, int]:
    """Return what a job takes its place in the queue with, by type: its accelerators, or its machines where CPUs have a
    pool; nothing when it does not queue."""
    if translation.accelerators:
        return dict(translation.accelerators)
    pool = naming.pool_name(CPU, translation.region, provisioning(translation.job))
    return {CPU: sum(translation.machines.values())} if pool in pools.quotas() else {}


def preview(spec: Mapping[str, Any], settings: Settings, *, source: str = "") -> Translation:
    """Translate `spec` alone, with a package URI that stands for the trainer's.

    :raises ConfigError: a machine or accelerator does not exist or fit, or a retired one is refused.
    """
    complete = {
        "region": settings.region,
        **spec,
        "packageUris": [naming.package_uri(settings.work, "VERSION", "SHA16")],
        "pythonModule": "trainer.task",
        "jobDir": f"{settings.work}/runs",
    }
    return translate(
        parse_training_input(complete, source),
        display_name="preview",
        labels={"managed-by": naming.MANAGED_BY},
        substitute=settings.substitute,
        images=Images(cpu=settings.image.cpu, gpu=settings.image.gpu),
        service_account=settings.service_account,
    )


def check_accelerator(name: str, *, source: str, key: str) -> None:
    """Refuse an accelerator type that Vertex AI does not have.

    :raises ConfigError: names those that it has.
    """
    known = (*GPU_TYPES, *CLOUD_TPU_TYPES, *TPU_NAMES.values())
    if name not in known:
        raise ConfigError("no such accelerator", source=source, key=key, value=name, allowed=known)


def provisioning(job: Mapping[str, Any]) -> Provisioning:
    """Return how a CustomJob's machines are provisioned, in the words of gpu_pools.yaml."""
    strategy = job.get("jobSpec", {}).get("scheduling", {}).get("strategy", "STANDARD")
    return next((model for model, name in STRATEGIES.items() if name == strategy), "standard")


def moved(error: ConfigError, source: str, key: str, value: object = None) -> ConfigError:
    """Return `error` told of another place."""
    return ConfigError(
        error.problem,
        source=source,
        key=key,
        value=error.value if value is None else value,
        allowed=error.allowed,
        next_step=error.next_step,
    )


def _set_workers(spec: dict[str, Any], conf: RunConf) -> None:
    if conf.worker_count is None:
        return
    if conf.worker_count == 0:
        for key in ("workerType", "workerConfig", "workerCount"):
            spec.pop(key, None)
        return
    spec["workerCount"] = conf.worker_count
    if "workerType" not in spec:
        spec["workerType"] = spec["masterType"]
        if "masterConfig" in spec:
            spec["workerConfig"] = copy.deepcopy(spec["masterConfig"])


def _roles(spec: Mapping[str, Any]) -> list[str]:
    return ["master", "worker"] if int(spec.get("workerCount", 0)) else ["master"]


def _set_machine(spec: dict[str, Any], role: str, conf: RunConf) -> None:
    if conf.machine_type is not None:
        spec[f"{role}Type"] = conf.machine_type
    if conf.accelerator_type is None and conf.accelerator_count is None:
        return
    config = spec.setdefault(f"{role}Config", {})
    if conf.accelerator_count == 0:
        config.pop("acceleratorConfig", None)
        return
    present = config.get("acceleratorConfig", {})
    kind = conf.accelerator_type or present.get("type")
    if kind is None:
        raise ConfigError(
            "GPUs of which type?",
            source=CONF,
            key="accelerator_count",
            value=conf.accelerator_count,
            next_step="add accelerator_type: the experiment has none",
        )
    config["acceleratorConfig"] = {"type": kind, "count": conf.accelerator_count or present.get("count", 1)}


def _with_image_hint(error: ConfigError, settings: Settings) -> ConfigError:
    missing = [f"image.{kind}" for kind in ("cpu", "gpu") if getattr(settings.image, kind) is None]
    if error.key != "runtimeVersion" or not missing:
        return error
    hint = f"or set {' and '.join(missing)} in the environment {settings.name}"
    return ConfigError(
        error.problem,
        source=error.source,
        key=error.key,
        value=error.value,
        allowed=error.allowed,
        next_step=f"{error.next_step}, {hint}",
    )


def _blamed(error: ConfigError, source: str, key: str, conf: RunConf) -> ConfigError:
    given = [name for name in HARDWARE if getattr(conf, name) is not None]
    if not given:
        return moved(error, error.source or source, f"{key}.{error.key}" if error.key else key)
    named = _CONF_KEYS.get(error.key.rsplit(".", 1)[-1])
    if named in given:
        return moved(error, CONF, str(named), getattr(conf, str(named)))
    return moved(error, CONF, given[0], getattr(conf, given[0]))
