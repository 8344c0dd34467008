"""`trainops init`: what a Google Cloud project needs, and with `--apply` its creation."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from trainops.errors import AccessError, ConfigError
from trainops.gcp.project import Addresses, Project
from trainops.settings import Settings, config_file, load_settings
from trainops.steps.project_needs import Need, project_needs
from trainops.steps.provision import Finding, compare, provide


def add_parser(subparsers: Any) -> None:
    """Add the command's arguments."""
    parser = subparsers.add_parser(
        "init",
        help="print, and with --apply create, what a Google Cloud project needs",
        description="Compare what an environment's Google Cloud project needs with what it has: APIs, buckets, the "
        "service account, roles. Nothing is changed without --apply, which only adds; among what it adds is a rule "
        "of the work bucket that deletes checkpoints after 30 days. "
        "Exit code 1: something could not be asked, or could not be created.",
    )
    parser.add_argument("--env", metavar="NAME", help="environment; TRAINOPS_ENVIRONMENT, else local, unless given")
    parser.add_argument("--apply", action="store_true", help="create what is missing; safe to run again")
    parser.add_argument(
        "--airflow-account",
        metavar="EMAIL",
        help="service account that Airflow works as; unless given, the last of impersonation_chain, else the jobs' own",
    )
    parser.add_argument("--output", choices=["text", "json"], default="text", help="json: findings on stdout")


def run(args: argparse.Namespace, addresses: Addresses | None = None) -> int:
    """Print the findings on stdout.

    :param addresses: other addresses than Google's.
    """
    settings = load_settings(args.env)
    if settings.credentials == "anonymous":
        raise ConfigError(
            "this environment is a local cloud, which needs nothing",
            source=str(config_file("environments", settings.name)),
            key="credentials",
            value=settings.credentials,
            next_step="name one that is Google's: --env gcp",
        )
    needs = project_needs(settings, args.airflow_account)
    project = _connected(settings, addresses, required=args.apply)
    try:
        found = [*_followed(project, needs, args.apply)]
    finally:
        if project is not None:
            project.close()
    print(_json(settings, found) if args.output == "json" else _text(found))
    _say_next(args, found)
    return exit_code(found, applied=args.apply)


def exit_code(found: list[Finding], *, applied: bool) -> int:
    """Return 0 when all could be asked and, when it was to be created, is there; else 1."""
    refused = {"unknown", "missing"} if applied else {"unknown"}
    return 1 if any(finding.state in refused for finding in found) else 0


def _connected(settings: Settings, addresses: Addresses | None, *, required: bool) -> Project | None:
    try:
        return Project.connect(settings, addresses=addresses)
    except AccessError as error:
        if required:
            raise
        print(f"nothing could be compared: {error}", file=sys.stderr)
        return None


def _followed(project: Project | None, needs: list[Need], apply: bool) -> Iterator[Finding]:
    """Tell on stderr how each need stands, as soon as it is known: creating may take minutes."""
    for finding in provide(project, needs) if apply and project is not None else compare(project, needs):
        print(f"{finding.state:7} {finding.kind} {finding.name}", file=sys.stderr)
        yield finding


def _json(settings: Settings, found: list[Finding]) -> str:
    needs = [asdict(finding) for finding in found]
    return json.dumps({"environment": settings.name, "project": settings.project, "needs": needs}, indent=2)


def _text(found: list[Finding]) -> str:
    rows = [("STATE", "KIND", "NAME"), *((finding.state, finding.kind, finding.name) for finding in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    lines = [f"{state:{widths[0]}}  {kind:{widths[1]}}  {name}" for state, kind, name in rows]
    for finding in found:
        if finding.state != "present":
            lines += ["", f"# {finding.kind} {finding.name}: {finding.problem}", finding.command]
    return "\n".join(lines)


def _say_next(args: argparse.Namespace, found: list[Finding]) -> None:
    missing = sum(finding.state == "missing" for finding in found)
    if missing and not args.apply:
        print(f"{missing} missing; `--apply` creates them, or run the commands yourself", file=sys.stderr)
    elif missing:
        print(f"{missing} could not be created; what Google said stands above each command", file=sys.stderr)
