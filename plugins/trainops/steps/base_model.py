"""The model that a run goes on from: looked for before anything is paid for, and frozen into the plan.

A promoted model is named by its channel, which moves. The plan gets the folder of the version that it points at, so
that neither a retry nor a later promotion changes the run.
"""

from __future__ import annotations

from typing import Any

from trainops.config.experiment import experiment_file, experiment_names, load_experiment
from trainops.config.origin import promoted_model
from trainops.config.plan import RunPlan
from trainops.errors import AccessError, ConfigError, IntegrityError, NotFoundError
from trainops.gcp.storage import Storage
from trainops.naming import dag_id
from trainops.settings import Settings
from trainops.steps.channels import list_channels, read_channel
from trainops.steps.model_versions import read_manifest

NEEDED = {"training": "config.json", "tokenizer": "tokenizer_config.json"}
"""What a Hugging Face folder has, by the section of the experiment that goes on from it."""

_LONGEST = ("max_position_embeddings", "n_positions")
"""Keys of config.json that say how many tokens a model takes at most; the second is GPT-2's."""


def origins(plan: RunPlan) -> dict[str, str]:
    """Return what the run goes on from, by section of its experiment; nothing when it begins with nothing."""
    given = {"training": plan.trainer.init_from, "tokenizer": plan.tokenizer.init_from}
    return {section: text for section, text in given.items() if text is not None}


def with_base_model(plan: RunPlan, settings: Settings, credentials: Any = None) -> RunPlan:
    """Return the plan with folders in place of the promoted models that it names, and the names beside them.

    Storage is asked only when the run goes on from something.

    :param credentials: of the Airflow connection; without them the application default ones are used.
    :raises ConfigError: no such model, nothing in its channel, no such folder, or a context that is too long for it.
    :raises IntegrityError: the channel points at a version that is gone.
    """
    if not origins(plan):
        return plan
    storage = Storage.connect(settings, credentials)
    try:
        return _frozen(plan, storage, settings)
    finally:
        storage.close()


def _frozen(plan: RunPlan, storage: Storage, settings: Settings) -> RunPlan:
    # Each channel is read once: it may move between two looks, and weights and tokenizer belong together.
    named: dict[str, str] = {}
    for section, text in origins(plan).items():
        if promoted_model(text) and text not in named:
            named[text] = _version_folder(plan, storage, settings, section, text)
    folders = {section: named.get(text, text) for section, text in origins(plan).items()}
    for section, folder in folders.items():
        if folder not in named.values():
            _check_folder(plan, storage, section, folder)
    if "training" in folders:
        _check_context(plan, storage, folders["training"])
    return plan.model_copy(
        update={
            "trainer": plan.trainer.model_copy(update={"init_from": folders.get("training")}),
            "tokenizer": plan.tokenizer.model_copy(update={"init_from": folders.get("tokenizer")}),
            "promoted_models": named,
        }
    )


def _version_folder(plan: RunPlan, storage: Storage, settings: Settings, section: str, text: str) -> str:
    model, channel = promoted_model(text) or ("", "")
    pointer = read_channel(storage, settings.models, model, channel).pointer
    if pointer is None:
        raise _nothing_there(plan, storage, settings, section, text)
    if read_manifest(storage, settings.models, model, pointer.version) is None:
        raise IntegrityError(
            f"{text} is {pointer.version}, which is gone or was never complete; point the channel at another with "
            f"`trainops models rollback {model} --channel {channel}`"
        )
    return pointer.uri


def _nothing_there(plan: RunPlan, storage: Storage, settings: Settings, section: str, text: str) -> ConfigError:
    model, channel = promoted_model(text) or ("", "")
    known = storage.folders(settings.models)
    problem = f"no model {model} was ever promoted to {settings.models}"
    allowed = [f"{name}@{channel}" for name in known]
    if model in known:
        problem = f"nothing is promoted to the channel {channel} of {model} yet"
        allowed = [f"{model}@{name}" for name, _ in list_channels(storage, settings.models, model)]
    return ConfigError(
        problem,
        source=str(experiment_file(plan.experiment)),
        key=f"{section}.init_from",
        value=text,
        allowed=allowed,
        next_step=_how_to_get(model),
    )


def _how_to_get(model: str) -> str:
    """Say which experiment makes the model."""
    for name in experiment_names():
        try:
            experiment = load_experiment(name)
        except ConfigError:
            continue  # Its own DAG tells what is wrong with it.
        if experiment.promotion.model == model:
            return f"train one first: `airflow dags trigger {dag_id(name)}`"
    return "name one that `trainops models` lists"


def _check_folder(plan: RunPlan, storage: Storage, section: str, folder: str) -> None:
    name = NEEDED[section]
    try:
        if storage.info(f"{folder.rstrip('/')}/{name}") is not None:
            return
    except AccessError:
        return  # The account that jobs run as may read what this one may not.
    except NotFoundError:
        pass
    raise ConfigError(
        f"there is no {name} in this folder",
        source=str(experiment_file(plan.experiment)),
        key=f"{section}.init_from",
        value=folder,
        next_step="name a Hugging Face folder",
    )


def _check_context(plan: RunPlan, storage: Storage, folder: str) -> None:
    try:
        found = storage.read_json(f"{folder.rstrip('/')}/config.json")
    except AccessError:
        return  # As above.
    config = found.value if found and isinstance(found.value, dict) else {}
    longest = next((config[key] for key in _LONGEST if isinstance(config.get(key), int)), None)
    if longest is not None and plan.trainer.model.context > longest:
        raise ConfigError(
            f"the model of training.init_from takes at most {longest} tokens",
            source=str(experiment_file(plan.experiment)),
            key="model.context",
            value=plan.trainer.model.context,
            next_step=f"write {longest} or less",
        )
