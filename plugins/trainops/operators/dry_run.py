"""What a job would be, without submitting it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from trainops import naming
from trainops.jobspec.cost import job_cost
from trainops.jobspec.cost_report import cost_lines
from trainops.jobspec.hidden import hidden_job
from trainops.jobspec.translate import translate
from trainops.jobspec.tuning import translate_tuning
from trainops.settings import Settings
from trainops.steps.start import JobRequest, attempt_body, frozen_spec, translate_request


def dry_run(settings: Settings, request: JobRequest, say: Callable[[str, str], None]) -> dict[str, Any]:
    """Tell the job that a first try would send, its price and the notes of its translation, and return the job.

    A tuning job is told too, though it cannot be run yet.

    :raises ConfigError: the job cannot be translated.
    """
    folder = naming.generation_folder(settings.work, request.experiment, request.run_key, 1)
    if request.plan is None:
        folder = naming.task_folder(folder, request.task)
    is_tuning = request.training_input.get("hyperparameters") is not None
    translation = translate_request(settings, request, folder, translate_tuning if is_tuning else translate)
    job = translation.job if is_tuning else attempt_body(frozen_spec(translation), folder, 1, 1)
    for note in translation.notes:
        say("%s", f"{note.verdict} {note.field} {json.dumps(note.value, default=str)}: {note.text or note.target}")
    for line in cost_lines(job_cost(job, translation.region), free_here=settings.credentials == "anonymous"):
        say("%s", line)
    shown = hidden_job(job)  # what is returned is an XCom, which everybody with access to Airflow reads
    say("%s", f"dry run, nothing is submitted; the job for {translation.region}:\n{json.dumps(shown, indent=2)}")
    return {"job_name": None, "job": shown}
