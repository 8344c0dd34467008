"""One conversion: what was read, completed by options, translated; all that is refused in it, not only the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

from trainops.commands import stand_ins
from trainops.commands.stand_ins import HOLES, camel, snake, value_at
from trainops.errors import ConfigError
from trainops.jobspec.cost import JobCost, job_cost
from trainops.jobspec.notes import Note
from trainops.jobspec.programs import INCOMPLETE
from trainops.jobspec.reading.held_job import HeldJob
from trainops.jobspec.reading.untold import TOLD_LATER
from trainops.jobspec.spelling import job_folded_in
from trainops.jobspec.training_input import parse_training_input
from trainops.jobspec.translate import Images, Translation, translate
from trainops.jobspec.tuning import translate_tuning

_LONGEST_NAME = 128
_MOST_REFUSALS = 20
_HINTS = {"region": "--region", "pythonModule": "--module", "packageUris": "--package-uris"}


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
        fields.pop(snake(name), None)
        if value is not None:
            fields[name] = value
        self._stand_ins.add(name)

    def add_notes(self, notes: list[Note]) -> None:
        """Add the rows of the translation, but for what stood in; a field that is told later keeps one row."""
        hidden = self._stand_ins | ({"pythonVersion"} if "runtimeVersion" in self._stand_ins else set())
        later = {note.field: note for note in self.notes if note.text == TOLD_LATER}
        for note in notes:
            if note.field in hidden or any(_touch(note.field, camel(error.key)) for error in self.refusals):
                continue
            told = later.pop(note.field, None)
            if told is not None:
                self.notes.remove(told)
                text = "; ".join(part for part in (note.text, told.text) if part)
                note = replace(note, verdict="changed", text=text)
            self.notes.append(note)

    def look_for_rest(self, given: Mapping[str, Any]) -> None:
        """Keep the fields that have no row."""
        rows = [*(note.field for note in self.notes), *self.not_looked_at]
        told = {snake(row.partition(".")[0]) for row in rows}
        self.not_looked_at |= {camel(str(name)): value for name, value in given.items() if snake(str(name)) not in told}


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
    take_images = target.images_replace_runtime or value_at(fields, "runtimeVersion") is None
    images = target.images if take_images else Images()
    for _ in range(_MOST_REFUSALS):
        try:
            translation = _translated(fields, name, source, target, images)
        except ConfigError as error:
            holes = _holes(error, fields)
            if not _set_aside(error, holes, fields, conversion):
                return
            images = stand_ins.IMAGES if "runtimeVersion" in holes else images
        else:
            _finish(conversion, translation)
            return


def _holes(error: ConfigError, fields: Mapping[str, Any]) -> set[str]:
    """Return what a partial job lacks; nothing for another error."""
    if not error.problem.startswith(INCOMPLETE):
        return set()
    return {hole for hole in HOLES if value_at(fields, hole) is None and hole in error.problem}


def _set_aside(error: ConfigError, holes: set[str], fields: dict[str, Any], conversion: Conversion) -> bool:
    """Refuse, and change `fields` so that the others can be looked at; False when that is not possible.

    What follows from an earlier refusal is not refused again: a field that was taken out before is missing now.
    """
    if holes:
        told = {known.key.partition(".")[0] for known in conversion.refusals}
        for hole in holes:
            conversion.stand_in(fields, hole, HOLES[hole])
        if not holes <= told:
            _refuse(conversion, _with_options(error, holes))
        return True
    if _follows(error, conversion.refusals):
        return stand_ins.taken_out(fields, error.key)
    _refuse(conversion, _with_option(error))
    if error.key == "scaleTier" and value_at(fields, "masterType") is None:
        conversion.stand_in(fields, "masterType", stand_ins.MACHINE)
    unread = stand_ins.set_aside(fields, error.key)
    conversion.not_looked_at |= unread or {}
    return unread is not None


def _follows(error: ConfigError, refusals: Sequence[ConfigError]) -> bool:
    """Whether the error is there only for what was taken out before."""
    for known in refusals:
        if known.key == error.key or (error.problem.startswith("missing") and known.key.startswith(f"{error.key}.")):
            return True
    return False


def _touch(field_of_row: str, refused: str) -> bool:
    """Whether a row tells of a field that is refused, or of what holds it or lies in it."""
    return f"{field_of_row}.".startswith(f"{refused}.") or f"{refused}.".startswith(f"{field_of_row}.")


def _complete(fields: dict[str, Any], options: Mapping[str, Any], conversion: Conversion) -> None:
    for name, value in options.items():
        own = value_at(fields, name)
        if own not in (None, value):
            text = f"the option {_HINTS[name]} stands for it: {value}"
            conversion.notes.append(Note(name, own, "changed", "", text))
        fields.pop(snake(name), None)
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
    conversion.stand_in(fields, "packageUris", HOLES["packageUris"])


def _display_name(fields: Mapping[str, Any], source: str, holder: str) -> str:
    body = fields.get("job")
    given = value_at(body, "jobId") if isinstance(body, Mapping) else None
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


def _with_option(error: ConfigError) -> ConfigError:
    """Return the error with the option that gives the field, too."""
    if error.key not in _HINTS:
        return error
    step = f"{error.next_step}; the option is {_HINTS[error.key]}"
    return ConfigError(
        error.problem, source=error.source, key=error.key, value=error.value, allowed=error.allowed, next_step=step
    )


def _with_options(error: ConfigError, holes: set[str]) -> ConfigError:
    hints = [option for hole, option in _HINTS.items() if hole in holes]
    step = f"{error.next_step}{', or give ' if hints else ''}{', '.join(hints)}"
    return ConfigError(error.problem, source=error.source, key=error.key, next_step=step)


def _finish(conversion: Conversion, translation: Translation) -> None:
    conversion.add_notes(translation.notes)
    if not conversion.refusals:
        conversion.job = translation.job
        conversion.accelerators, conversion.machines = translation.accelerators, translation.machines
        conversion.cost = job_cost(translation.job, translation.region)
