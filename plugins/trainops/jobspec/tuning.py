"""TrainingInput with hyperparameters in, HyperparameterTuningJob of Vertex AI out. Pure, as `translate` is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trainops.jobspec.hyperparameters import HyperparameterSpec
from trainops.jobspec.images import Images
from trainops.jobspec.notes import Note, Notebook
from trainops.jobspec.study import study_spec
from trainops.jobspec.training_input import TrainingInput
from trainops.jobspec.translate import Translation, translate

__all__ = ["translate_tuning"]

_KEY = "hyperparameters"


def translate_tuning(
    spec: TrainingInput,
    *,
    display_name: str,
    labels: Mapping[str, str],
    substitute: str,
    images: Images | None = None,
    service_account: str | None = None,
    env: Mapping[str, str] | None = None,
) -> Translation:
    """Translate a tuning job; the parameters are those of `translate`.

    :returns: `job` is a HyperparameterTuningJob; accelerators and machines are those of all trials that run at once.
    :raises ConfigError: a field of the tuning, or of the job that each trial is, cannot be translated.
    """
    notebook = Notebook(spec.source, substitute)
    hyper = _checked(spec, notebook)
    study = study_spec(hyper, notebook)
    counts = _trial_counts(hyper, notebook)
    trial = translate(
        spec.model_copy(update={"hyperparameters": None}),
        display_name=display_name,
        labels=labels,
        substitute=substitute,
        images=images,
        service_account=service_account,
        env=env,
    )
    _note_folder(spec, notebook)
    whole = {name: value for name, value in trial.job.items() if name != "jobSpec"}
    job: dict[str, Any] = {**whole, "studySpec": study, **counts, "trialJobSpec": trial.job["jobSpec"]}
    at_once = counts["parallelTrialCount"]
    return Translation(
        job,
        trial.region,
        [*(_of_trial(note) for note in trial.notes), *notebook.notes],
        {kind: at_once * count for kind, count in trial.accelerators.items()},
        {kind: at_once * count for kind, count in trial.machines.items()},
    )


def _checked(spec: TrainingInput, notebook: Notebook) -> HyperparameterSpec:
    hyper = spec.hyperparameters
    if hyper is None:
        raise notebook.error(
            _KEY, "missing: a tuning job needs them", next_step="add goal, params and maxTrials, or send a custom job"
        )
    if hyper.resume_previous_job_id is not None:
        raise notebook.error(
            f"{_KEY}.resumePreviousJobId",
            "Vertex AI cannot go on with an earlier tuning job",
            value=hyper.resume_previous_job_id,
            next_step="leave it out, and narrow params to the ranges that did well in the earlier job",
        )
    return hyper


def _trial_counts(hyper: HyperparameterSpec, notebook: Notebook) -> dict[str, int]:
    trials = _count("maxTrials", hyper.max_trials, "maxTrialCount", None, notebook)
    at_once = _count("maxParallelTrials", hyper.max_parallel_trials, "parallelTrialCount", trials, notebook)
    found = {"maxTrialCount": trials, "parallelTrialCount": at_once}
    return found | _failed_trials(hyper.max_failed_trials, notebook)


def _count(field: str, value: int | None, target: str, most: int | None, notebook: Notebook) -> int:
    key = f"{_KEY}.{field}"
    if value is None:
        notebook.defaulted(key, None, target, "1, the default of AI Platform")
        return 1
    if value < 1:
        raise notebook.error(key, "a number of trials is 1 or more", value=value, next_step="leave it out for 1")
    if most is not None and value > most:
        notebook.mapped(key, value, target, f"{most}: there are no more trials")
        return most
    notebook.mapped(key, value, target)
    return value


def _failed_trials(value: int | None, notebook: Notebook) -> dict[str, int]:
    key, target = f"{_KEY}.maxFailedTrials", "maxFailedTrialCount"
    if value is None:
        return {}
    if value < 0:
        raise notebook.error(key, "a number of trials is 0 or more", value=value, next_step="0 leaves it to Vertex AI")
    if value == 0:
        notebook.mapped(key, value, "", "not sent: Vertex AI decides, as AI Platform did")
        return {}
    notebook.mapped(key, value, target)
    return {target: value}


def _note_folder(spec: TrainingInput, notebook: Notebook) -> None:
    if spec.job_dir is not None:
        text = "--job-dir is the same in every trial; only AIP_MODEL_DIR and the like have a folder for each"
        notebook.changed("jobDir", spec.job_dir, "trialJobSpec.baseOutputDirectory.outputUriPrefix", text)


def _of_trial(note: Note) -> Note:
    """Return a note of a custom job as one of the job that each trial is."""
    if note.target != "jobSpec" and not note.target.startswith("jobSpec."):
        return note
    return replace(note, target=f"trialJobSpec{note.target.removeprefix('jobSpec')}")
