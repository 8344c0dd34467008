"""The `cloudml.yml` of the R package cloudml: a TrainingInput, beside what gcloud and the package needed.

Source: the package's articles "CloudML Configuration" and "Training with CloudML", https://github.com/rstudio/cloudml.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainops.errors import ConfigError
from trainops.jobspec.notes import Note
from trainops.jobspec.reading.held_job import HeldJob

_SECTIONS = ("gcloud", "cloudml", "customCommands")
_INPUT = "trainingInput"
_GCLOUD = {"region": "region", "runtime-version": "runtimeVersion"}
"""Key of `gcloud` -> field of TrainingInput; the TrainingInput itself goes before it."""
_PROGRAM = (
    "the R program of the folder, which the package uploaded; no prebuilt image has R: build an image with R and the "
    "program, and set masterConfig.imageUri"
)
_WHY = {
    "gcloud.project": "not sent: the project is the environment's",
    "gcloud.account": "not sent: the environment's credentials send the job",
    "cloudml.storage": "not sent: the package kept programs and results there; set jobDir for a folder of the job",
    "customCommands": "not sent: the package ran them before the program; run them when you build the image",
}


def cloudml_config(data: Any, source: str) -> HeldJob | None:
    """Return the job of a `cloudml.yml`; None when `data` is none.

    :raises ConfigError: a part of it is no mapping, or there are two inputs.
    """
    if not isinstance(data, Mapping) or not any(name in data for name in _SECTIONS):
        return None
    gcloud, cloudml = (_mapping(data, name, source) for name in ("gcloud", "cloudml"))
    if _INPUT in data and _INPUT in cloudml:
        step = "keep one of the two"
        raise ConfigError("stands in the file twice", source=source, key=f"cloudml.{_INPUT}", next_step=step)
    training_input = _mapping(data if _INPUT in data else cloudml, _INPUT, source)
    notes = _fill(training_input, gcloud)
    rest = {f"gcloud.{name}": value for name, value in gcloud.items() if name not in _GCLOUD}
    rest |= {f"cloudml.{name}": value for name, value in cloudml.items() if name != _INPUT}
    rest |= {name: data[name] for name in ("customCommands",) if name in data}
    notes += [
        Note(name, value, "changed", "", _WHY.get(name, "not sent: the package's own")) for name, value in rest.items()
    ]
    if not _has_image(training_input):
        notes.append(Note("(the program)", None, "changed", "", _PROGRAM))
    others = {name: value for name, value in data.items() if name not in {*_SECTIONS, _INPUT}}
    return HeldJob({_INPUT: training_input, **others}, "the cloudml.yml of the R package cloudml", notes)


def _fill(training_input: dict[str, Any], gcloud: Mapping[str, Any]) -> list[Note]:
    """Take the fields that gcloud was given; tell of those that the input sets otherwise."""
    notes = []
    for name, field in _GCLOUD.items():
        if name not in gcloud:
            continue
        own = training_input.get(field)
        if field == "runtimeVersion" and _has_image(training_input):
            notes.append(
                Note(f"gcloud.{name}", gcloud[name], "changed", "", "not sent: masterConfig.imageUri stands for it")
            )
        elif own is None:
            training_input[field] = gcloud[name]
            notes.append(Note(f"gcloud.{name}", gcloud[name], "mapped", "", f"read as {field}"))
        elif own != gcloud[name]:
            notes.append(Note(f"gcloud.{name}", gcloud[name], "changed", "", f"not sent: {field} says {own}"))
    return notes


def _has_image(training_input: Mapping[str, Any]) -> bool:
    config = training_input.get("masterConfig")
    return isinstance(config, Mapping) and config.get("imageUri") is not None


def _mapping(data: Mapping[str, Any], name: str, source: str) -> dict[str, Any]:
    found = data.get(name)
    if found is None:
        return {}
    if isinstance(found, Mapping):
        return {str(key): value for key, value in found.items()}
    step = f"write {name} with its keys below it"
    raise ConfigError("a mapping of keys to values is expected", source=source, key=name, value=found, next_step=step)
