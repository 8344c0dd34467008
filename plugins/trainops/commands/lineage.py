"""`trainops lineage`: what a model was made of, down to the files of its rows, and what it cost."""

from __future__ import annotations

import argparse
import json
from typing import Any

from trainops.gcp.storage import Storage
from trainops.settings import load_settings
from trainops.steps.provenance import provenance

SHOWN_FILES = 10


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    parser = subparsers.add_parser("lineage", help="data, package, config, jobs and cost of a model's version")
    parser.set_defaults(run=run)
    parser.add_argument("model", metavar="MODEL", help="name of the model")
    parser.add_argument("--version", metavar="VERSION", help="a version of `trainops models show`; else production's")
    parser.add_argument("--files", action="store_true", help=f"name all files, not the first {SHOWN_FILES}")
    parser.add_argument("--output", choices=["text", "json"], default="text", help="json: for programs")
    parser.add_argument("--env", default=None, help="environment; else what TRAINOPS_ENVIRONMENT says")


def run(args: argparse.Namespace) -> int:
    """Walk from the version to all that it was made of.

    :raises ConfigError: no such model or version.
    """
    settings = load_settings(args.env)
    storage = Storage.connect(settings)
    try:
        found = provenance(storage, settings, args.model, args.version)
    finally:
        storage.close()
    print(json.dumps(found, indent=2) if args.output == "json" else "\n".join(_lines(found, all_files=args.files)))
    return 0


def _lines(found: dict[str, Any], *, all_files: bool) -> list[str]:
    where = f" ({', '.join(found['channels'])})" if found["channels"] else ""
    made = found["run"]
    return [
        f"{found['model']} {found['version']}{where}, evaluation loss {found['eval_loss']:.4f}",
        f"config    {made['plan']}{_gone(found, 'plan')}",
        f"          experiment {made['experiment']}, run {made['run_key']}, conf {json.dumps(made['conf'])}",
        *_data_lines(found, all_files=all_files),
        f"tokens    {found['tokens'] or 'not known'}",
        *([f"base      {found['base_model']}"] if found["base_model"] else []),
        *(f"package   {uri}" for uri in found["packages"]),
        *(f"job       {_job_line(job)}" for job in found["jobs"]),
        f"cost      {_cost_line(found)}",
    ]


def _data_lines(found: dict[str, Any], *, all_files: bool) -> list[str]:
    data = found["data"]
    if data is None:
        return [f"data      of {found['data_date']}{_gone(found, 'data')}"]
    sources = data["sources"] if all_files else data["sources"][:SHOWN_FILES]
    more = len(data["sources"]) - len(sources)
    return [
        f"data      {data['uri']}: {data['files']} files, {data['documents']} documents, {data['bytes']} bytes",
        *(f"          {one['source']}  {one['size']} bytes  crc32c {one['crc32c']}" for one in sources),
        *([f"          and {more} more: --files names all"] if more else []),
        *([] if data["sources"] else ["          its files were not noted when it was staged"]),
    ]


def _job_line(job: dict[str, Any]) -> str:
    hours = "unknown time" if job["hours"] is None else f"{job['hours']:.3f} h"
    cost = f"no price ({'; '.join(job['no_price'])})" if job["usd"] is None else f"{job['usd']:.2f} USD"
    return f"{job['job_name']}  {job['task']} #{job['attempt']}: {job['verdict'] or 'open'}, {hours}, {cost}"


def _cost_line(found: dict[str, Any]) -> str:
    left = found["cost"]["not_counted"]
    without = f", without {len(left)} jobs that have no price" if left else ""
    return f"{found['cost']['usd']:.2f} USD by the list of prices{without}{_gone(found, 'jobs')}"


def _gone(found: dict[str, Any], what: str) -> str:
    return ": gone by now" if what in found["gone"] else ""
