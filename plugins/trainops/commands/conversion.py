"""One conversion: what was read, completed by options, translated; all that is refused in it, not only the first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from trainops.errors import ConfigError
from trainops.jobspec.cost import JobCost, job_cost
from trainops.jobspec.notes import Note
from trainops.jobspec.pools import ROLES
from trainops.jobspec.reading.held_job import HeldJob
from trainops.jobspec.spelling import job_folded_in
from trainops.jobspec.training_input import parse_training_input
from trainops.jobspec.translate import Images, Translation, translate
from trainops.jobspec.tuning import translate_tuning

_LONGEST_NAME = 128
_MOST_REFUSALS = 20
_HOLES: dict[str, Any] = {
    "region": "us-central1",
    "pythonModule": "trainer.task",
    "packageUris": ["gs://bucket/package.tar.gz"],
    "runtimeVersion": None,
}
"""Fields that a partial job may lack, and what stands for them while the others are looked at."""

_MACHINES = {f"{role}Type": f"{role}Config.acceleratorConfig" for role in ROLES}
_STAND_IN_MACHINE = "n1-standard-4"
_HINTS = {"region": "--region", "pythonModule": "--module", "packageUris": "--package-uris"}
_STAND_IN_IMAGES = Images("image", "image", "image")


@dataclass(frozen=True)
class Target:
    """What the environment adds to a job.

    :param images_replace_runtime: take the environment's images for a job with a runtime version too.
    """

    substitute: str = "warn"
    images: Images = field(default_factory=Images)
    service_account: str | None = None
    images_replace_runtime: bool = False


@dataclass
class Conversion:
    """What came of it.

    :param job: the CustomJob, or the HyperparameterTuningJob; None when something is refused.
    :param notes: a row for every field that was looked at.
    :param cost: what the job costs; None when something is refused.
    :param not_looked_at: fields that were given, and depend on one that is refused.
    """

    notes: list[Note]
    refusals: list[ConfigError] = field(default_factory=list)
    job: dict[str, Any] | None = None
    accelerators: dict[str, int] = field(default_factory=dict)
    machines: dict[str, int] = field(default_factory=dict)
    cost: JobCost | None = None
    not_looked_at: dict[str, Any] = field(default_factory=dict)
    _stand_ins: set[str] = field(default_factory=set)

    def stand_in(self, fields: dict[str, Any], name: str, value: Any) -> None:
        """Let `value` stand for a field that is refused or missing; no row tells of it."""
        fields.pop(_snake(name), None)
        if value is not None:
            fields[name] = value
        self._stand_ins.add(name)

    def add_notes(self, notes: list[Note]) -> None:
        """Add the rows of the translation, but for what stood in."""
        hidden = self._stand_ins | ({"pythonVersion"} if "runtimeVersion" in self._stand_ins else set())
        self.notes += [note for note in notes if note.field not in hidden]

    def look_for_rest(self, given: Mapping[str, Any]) -> None:
        """Keep the fields that have no row."""
        rows = [*(note.field for note in self.notes), *self.not_looked_at]
        told = {_snake(row.partition(".")[0]) for row in rows}
        self.not_looked_at |= {
            _camel(str(name)): value for name, value in given.items() if _snake(str(name)) not in told
        }


def converted(held: HeldJob, options: Mapping[str, Any], source: str, target: Target) -> Conversion:
    """Translate a job; what is refused is set aside, so that the other fields are looked at too.

    :param options: fields of TrainingInput, in REST spelling, that complete the job or replace its own.
    :raises ConfigError: what was read is no job at all.
    """
    fields = job_folded_in(held.fields, source)
    conversion = Conversion(list(held.notes))
    _complete(fields, options, conversion)
    given = dict(fields)
    _refuse_packaging(held, options, fields, source, conversion)
    _translate(fields, _display_name(fields, source, held.name), source, target, conversion)
    if conversion.refusals:
        conversion.look_for_rest(given)
    return conversion


def _translate(fields: dict[str, Any], name: str, source: str, target: Target, conversion: Conversion) -> None:
    take_images = target.images_replace_runtime or _value(fields, "runtimeVersion") is None
    images = target.images if take_images else Images()
    for _ in range(_MOST_REFUSALS):
        try:
            translation = _translated(fields, name, source, target, images)
        except ConfigError as error:
            holes = {hole for hole in _HOLES if _value(fields, hole) is None and hole in error.problem}
            if not _set_aside(error, holes, fields, conversion):
                return
            images = _STAND_IN_IMAGES if "runtimeVersion" in holes else images
        else:
            _finish(conversion, translation)
            return


def _set_aside(error: ConfigError, holes: set[str], fields: dict[str, Any], conversion: Conversion) -> bool:
    """Refuse, and change `fields` so that the others can be looked at; False when that is not possible.

    A field that was refused and taken out before is missing now, which is nothing new.
    """
    told = {known.key.partition(".")[0] for known in conversion.refusals}
    if holes:
        for hole in holes:
            conversion.stand_in(fields, hole, _HOLES[hole])
        if not holes <= told:
            _refuse(conversion, _with_options(error, holes))
        return True
    if any(error.key == known.key for known in conversion.refusals):
        return False
    _refuse(conversion, error)
    if error.key not in _MACHINES:
        return _drop(fields, error.key)
    conversion.stand_in(fields, error.key, _STAND_IN_MACHINE)
    _drop_inside(fields, _MACHINES[error.key], conversion)
    return True


def _complete(fields: dict[str, Any], options: Mapping[str, Any], conversion: Conversion) -> None:
    for name, value in options.items():
        own = _value(fields, name)
        if own not in (None, value):
            text = f"the option {_HINTS[name]} stands for it: {value}"
            conversion.notes.append(Note(name, own, "changed", "", text))
        fields.pop(_snake(name), None)
        fields[name] = value


def _refuse_packaging(
    held: HeldJob, options: Mapping[str, Any], fields: dict[str, Any], source: str, conversion: Conversion
) -> None:
    """Say that nothing is packaged here."""
    if not held.to_package:
        return
    files = ", ".join(held.to_package)
    if "packageUris" in options:
        text = "not packaged here: --package-uris says where the packages are"
        conversion.notes.append(Note("--package-path, --packages", files, "changed", "", text))
        return
    error = ConfigError(
        "gcloud packages and uploads local code, and convert cannot",
        source=source,
        key="--package-path, --packages",
        value=files,
        next_step="build it with `python -m build --sdist`, copy it to a bucket, and give --package-uris gs://...",
    )
    _refuse(conversion, error)
    conversion.stand_in(fields, "packageUris", _HOLES["packageUris"])


def _display_name(fields: Mapping[str, Any], source: str, holder: str) -> str:
    body = fields.get("job")
    given = _value(body, "jobId") if isinstance(body, Mapping) else None
    if isinstance(given, str):
        return given
    name = holder or (PurePath(source).stem if source != "stdin" else "") or "converted"
    # A file's name may hold bytes that are no UTF-8, which no request can.
    return name[:_LONGEST_NAME].encode("utf-8", "replace").decode()


def _translated(fields: Mapping[str, Any], name: str, source: str, target: Target, images: Images) -> Translation:
    spec = parse_training_input(fields, source)
    translated = translate if spec.hyperparameters is None else translate_tuning
    return translated(
        spec,
        display_name=name,
        labels={},
        substitute=target.substitute,
        images=images,
        service_account=target.service_account,
    )


def _refuse(conversion: Conversion, error: ConfigError) -> None:
    conversion.refusals.append(error)
    conversion.notes.append(Note(error.key, error.value, "refused", "", error.problem))


def _with_options(error: ConfigError, holes: set[str]) -> ConfigError:
    hints = [option for hole, option in _HINTS.items() if hole in holes]
    step = f"add them to the job{', or give ' if hints else ''}{', '.join(hints)}"
    return ConfigError(error.problem, source=error.source, key=error.key, next_step=step)


def _drop(fields: dict[str, Any], key: str) -> bool:
    """Take the refused field out; False when it is not there to be taken out."""
    head, _, rest = key.partition(".")
    name = next((name for name in (head, _snake(head)) if name in fields), None)
    if name is None:
        return False
    inner = fields[name]
    if rest and isinstance(inner, Mapping):
        smaller = dict(inner)
        if _drop(smaller, rest):
            fields[name] = smaller
            return True
    del fields[name]
    return True


def _drop_inside(fields: dict[str, Any], key: str, conversion: Conversion) -> None:
    """Take out an inner field, where there is one: what it needs is refused."""
    outer, _, inner = key.partition(".")
    held = _value(fields, outer)
    if not isinstance(held, Mapping) or _value(held, inner) is None:
        return
    conversion.not_looked_at[key] = _value(held, inner)
    _drop(fields, key if len(held) > 1 else outer)


def _finish(conversion: Conversion, translation: Translation) -> None:
    conversion.add_notes(translation.notes)
    if not conversion.refusals:
        conversion.job = translation.job
        conversion.accelerators, conversion.machines = translation.accelerators, translation.machines
        conversion.cost = job_cost(translation.job, translation.region)


def _value(fields: Mapping[str, Any], name: str) -> Any:
    return fields.get(name, fields.get(_snake(name)))


def _snake(name: str) -> str:
    return re.sub(r"([A-Z])", lambda found: f"_{found.group().lower()}", name)


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)
