"""`trainops plan EXPERIMENT`: the job that a run would send, without sending it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from trainops import naming
from trainops.commands.moment import run_now
from trainops.config.candidates import PlanCandidate
from trainops.config.conf import CONF
from trainops.config.gpu_pools import GpuPools, load_gpu_pools
from trainops.config.machines import asked_of_queue, preview, provisioning
from trainops.config.plan import RunPlan
from trainops.config.resolve import resolve
from trainops.errors import ConfigError
from trainops.jobspec.cost import JobCost, job_cost
from trainops.jobspec.cost_report import cost_json, cost_lines, money_json
from trainops.jobspec.hidden import hidden_job
from trainops.jobspec.translate import Translation
from trainops.naming import pool_gpus
from trainops.settings import Settings, load_settings
from trainops.steps.start import JobRequest, attempt_body, frozen_spec, translate_request
from trainops.validation import parse_json

TASK = "submit_training"
"""Task whose job is shown; its name stands in labels and keys."""


_OTHER_JOB = "the job that makes the tokens"
"""A run's second job, of minutes, and only when the tokens are new; the price is the training job's."""


def add_parser(subparsers: Any) -> None:
    """Add the command's arguments."""
    parser = subparsers.add_parser(
        "plan",
        help="show the job that a run of an experiment would send, its GPUs, machines and price",
        description="Show the job that a run triggered now would send to Vertex AI, and its price. Nothing is sent or "
        "staged: what only a run can know stands in capitals.",
    )
    parser.add_argument("experiment", metavar="EXPERIMENT", help="name of a file in experiments/")
    parser.add_argument("--conf", metavar="JSON", default="{}", help="conf of the run, or @FILE that holds it")
    parser.add_argument("--env", metavar="NAME", help="environment; TRAINOPS_ENVIRONMENT, else local, unless given")
    parser.add_argument("--output", choices=["text", "json"], default="text", help="json: everything as one object")


def run(args: argparse.Namespace) -> int:
    """Print the job, its machines, its price and the notes of the translation on stdout."""
    from trainops.steps.base_model import with_base_model
    from trainops.steps.preflight import preflight  # reads files and packages the trainer

    settings = load_settings(args.env)
    plan = resolve(args.experiment, read_conf(args.conf), run_now(args.experiment), settings)
    plan = with_base_model(plan, settings)
    preflight(plan, settings)
    translation = training_preview(plan, settings)
    cost = job_cost(translation.job, translation.region)
    shown = described(plan, settings, translation, cost)
    lines = cost_lines(cost, free_here=settings.credentials == "anonymous", deadline_hours=_deadline_hours(plan))
    print(json.dumps(shown, indent=2) if args.output == "json" else _text(shown, lines))
    return 0


def read_conf(text: str) -> Mapping[str, Any]:
    """Return the conf that the command line gives: JSON, or `@FILE` that holds it.

    :raises ConfigError: the file is missing, or its text is no JSON object.
    """
    source = CONF
    if text.startswith("@"):
        source = text[1:]
        text = _read(Path(source))
    conf = parse_json(text, source=source)
    if not isinstance(conf, dict):
        raise ConfigError("a conf is a JSON object", source=source, value=conf, next_step='write it like {"steps": 50}')
    return conf


def described(plan: RunPlan, settings: Settings, translation: Translation, cost: JobCost) -> dict[str, Any]:
    """Return the training job of `plan` with notes, GPUs, machines, pools, price and the plan itself."""
    deadline, pools = _deadline_hours(plan), load_gpu_pools()
    return {
        "experiment": plan.experiment,
        "environment": plan.environment,
        "run_key": plan.run_key,
        "data_date": plan.data_date.isoformat(),
        "base_model": plan.trainer.init_from,
        "region": translation.region,
        "gpus": dict(translation.accelerators),
        "machines": dict(translation.machines),
        "pools": pools_of(translation, pools),
        "candidates": [_candidate(item, settings, pools) for item in plan.candidates],
        "price": {
            **cost_json(cost),
            "not_included": [*cost.not_included, _OTHER_JOB],
            "deadline_hours": deadline,
            "at_most_until_deadline": money_json(cost.at_most(Decimal(str(deadline)))),
        },
        "notes": [
            {key: getattr(note, key) for key in ("field", "value", "verdict", "target", "text")}
            for note in translation.notes
        ],
        "job": hidden_job(translation.job),
        "plan": plan.to_json(),
    }


def pools_of(translation: Translation, pools: GpuPools) -> dict[str, int]:
    """Return what a job takes of which pool; `resolve` has refused GPUs that have none."""
    return pool_gpus(asked_of_queue(translation, pools), translation.region, provisioning(translation.job))


def _candidate(candidate: PlanCandidate, settings: Settings, pools: GpuPools) -> dict[str, Any]:
    """Other machines that the run may take: where, and their price per hour."""
    translation = preview(candidate.training_input, settings)
    cost = job_cost(translation.job, translation.region)
    return {
        "region": translation.region,
        "provisioning": provisioning(translation.job),
        "pools": pools_of(translation, pools),
        "machines": dict(translation.machines),
        "after_spot": candidate.after_spot,
        "price": cost_json(cost)["per_hour"],
    }


def training_preview(plan: RunPlan, settings: Settings) -> Translation:
    """Return the training job's translation as a first try would send it, in capitals what only a run knows."""
    folder = naming.generation_folder(settings.work, plan.experiment, plan.run_key, 1)
    tokens = naming.tokens_folder(settings.work, "DATASET_SHA16", plan.tokenizer_sha16)
    given = {
        "packageUris": [naming.package_uri(settings.work, "VERSION", "SHA16")],
        "pythonModule": "trainer.task",
        "args": ["--tokens", tokens],
    }
    request = JobRequest(
        job_key=naming.job_key(plan.run_key, TASK),
        run_key=plan.run_key,
        experiment=plan.experiment,
        task=TASK,
        display_name=plan.run_key,
        training_input={"region": settings.region, **plan.training_input, **given},
        plan=plan.to_json(),
        labels={"dag": naming.label_value(plan.dag_id)},
        max_running_hours=plan.max_running_hours,
    )
    translation = translate_request(settings, request, folder)
    return replace(translation, job=attempt_body(frozen_spec(translation), folder, 1, 1))


def _deadline_hours(plan: RunPlan) -> float:
    """Hours from its start after which a run's training ends: attempts may follow each other in all of them."""
    return plan.max_waiting_hours + plan.max_running_hours


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", source=CONF, key="--conf", value=f"@{path}") from error


def _text(shown: Mapping[str, Any], price: list[str]) -> str:
    counts = {key: ", ".join(f"{count} x {kind}" for kind, count in shown[key].items()) for key in ("gpus", "machines")}
    lines = [
        f"run key    {shown['run_key']}",
        f"data date  {shown['data_date']}",
        *([f"base model {shown['base_model']}"] if shown["base_model"] else []),
        f"region     {shown['region']}",
        f"GPUs       {counts['gpus'] or 'none'}",
        f"machines   {counts['machines']}",
        f"pools      {', '.join(f'{count} of {name}' for name, count in shown['pools'].items()) or 'none'}",
        *(_else(item) for item in shown["candidates"]),
        "",
        "# the price of the training job",
        *price,
        f"{_OTHER_JOB} is not counted",
        "",
        "# notes of the translation",
        *(_note(note) for note in shown["notes"]),
        "",
        "# the CustomJob",
        yaml.dump(shown["job"], Dumper=_PlainDumper, sort_keys=False, width=120).rstrip(),
    ]
    return "\n".join(lines)


def _else(candidate: Mapping[str, Any]) -> str:
    gpus = ", ".join(f"{count} of {name}" for name, count in candidate["pools"].items()) or candidate["region"]
    return f"or         {gpus}" + (", once Spot is given up" if candidate["after_spot"] else "")


def _note(note: Mapping[str, Any]) -> str:
    value = "" if note["value"] is None else f" {json.dumps(note['value'], default=str)}"
    return f"{note['verdict']:<9}  {note['field']}{value}{note['text'] and ': '}{note['text']}"


class _PlainDumper(yaml.SafeDumper):
    """Writes a list out each time that it stands, where YAML would refer to the first one."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
