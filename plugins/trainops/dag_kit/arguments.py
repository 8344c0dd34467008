"""Arguments of the training DAGs: schedule, owner, tags, documentation, retries."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pendulum

from trainops import naming
from trainops.config.experiment import Experiment
from trainops.dag_kit.params import conf_params
from trainops.dag_kit.timetable import ExperimentTimetable

DEFAULT_ARGS: dict[str, Any] = {
    "retries": 2,
    "retry_delay": timedelta(seconds=20),
    "retry_exponential_backoff": True,
    "max_retry_delay": timedelta(minutes=10),
}
"""Every task can be repeated without harm, so what may pass is retried; a user's mistake fails at once."""

NO_SCHEDULE_START = pendulum.datetime(2026, 1, 1, tz="UTC")


def dag_arguments(name: str, experiment: Experiment) -> dict[str, Any]:
    """What `DAG(...)` gets for an experiment."""
    schedule = experiment.schedule
    start = NO_SCHEDULE_START
    if schedule is not None:
        day = schedule.start_date
        start = pendulum.datetime(day.year, day.month, day.day, tz=pendulum.timezone(schedule.timezone))
    return {
        "dag_id": naming.dag_id(name),
        "description": experiment.description.strip().splitlines()[0],
        "doc_md": doc_md(name, experiment),
        "start_date": start,
        "tags": sorted({"trainops", "training", *experiment.tags}),
        "params": conf_params(),
        "default_args": {**DEFAULT_ARGS, "owner": experiment.owner},
        "max_active_runs": 16,
        "render_template_as_native_obj": True,
    }


def schedule_of(experiment: Experiment) -> ExperimentTimetable | None:
    """When the experiment runs by itself: at the cron's moments, in the schedule's time zone."""
    schedule = experiment.schedule
    return ExperimentTimetable(schedule.cron, timezone=pendulum.timezone(schedule.timezone)) if schedule else None


def doc_md(name: str, experiment: Experiment) -> str:
    """The page for the person on call."""
    schedule = experiment.schedule
    when = f"`{schedule.cron}` in {schedule.timezone}" if schedule else "only when triggered"
    return f"""
### {naming.dag_id(name)}

{experiment.description.strip()}

Owner: **{experiment.owner}**. Runs: {when}. Data: `{experiment.dataset}`, of the day before the run in that zone
(or `data_date` of the conf). Model: `{experiment.promotion.model}`, channel `{experiment.promotion.channel}`.
File: `include/configs/experiments/{name}.yaml`.

**Start it** with `airflow dags trigger {naming.dag_id(name)} --conf '{{"steps": 50}}'`, or with *Trigger* above.
Each key of the conf is optional and explained in the form; a wrong one fails `resolve_run` before anything is paid for.

| what you see | what it means | what to do |
|---|---|---|
| `resolve_run` failed | experiment, conf or data is wrong | its last log line names file, key and what is allowed |
| `submit_training` deferred | no GPUs are free | its log says why it waits, and for whom |
| `wait_for_training` failed | the job failed; its last lines are in the log | clear `submit_training` to start anew |
| `promote_model` skipped | the gate said no | `decide_promotion` tells each rule with its figures |
| `end_run` failed | a cancel was not confirmed | housekeeping goes on with it; look at the job in the console |

Clearing a task starts its work anew and ends the job it had; a retry goes on with the job that runs.
`trainops runs show RUN_KEY` tells the story of a run.
""".strip()


def broken_arguments(name: str, error: Exception) -> dict[str, Any]:
    """What `DAG(...)` gets for an experiment whose file cannot be used; its name may be part of what is wrong."""
    return {
        "dag_id": naming.dag_id(re.sub(r"[^A-Za-z0-9_.-]", "_", name)),
        "description": f"broken: {error}"[:200],
        "doc_md": f"The file `include/configs/experiments/{name}.yaml` cannot be used:\n\n```\n{error}\n```\n",
        "start_date": NO_SCHEDULE_START,
        "tags": ["broken", "trainops"],
        "default_args": {"owner": "trainops"},
    }
