"""`trainops convert FILE|-`: the Vertex AI job that an AI Platform training job becomes."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from trainops.commands.conversion import Conversion, Target, converted
from trainops.errors import ConfigError
from trainops.jobspec.cost_report import cost_lines
from trainops.jobspec.notes import Note
from trainops.jobspec.reading.gcloud_flags import listed
from trainops.jobspec.reading.text import read_job
from trainops.jobspec.translate import Images
from trainops.settings import load_settings

_OPTIONS = {"pythonModule": "module", "packageUris": "package_uris", "region": "region"}
_SHOWN_VALUE = 60
_REFUSED = 2
_NONE = "-"
_NOT_LOOKED_AT = "not looked at: it depends on what is refused"


def add_parser(subparsers: Any) -> None:
    """Add the command's arguments."""
    parser = subparsers.add_parser(
        "convert",
        help="show the Vertex AI job that an AI Platform training job becomes",
        description="Print the CustomJob on stdout, what became of every field and the price per hour on stderr. "
        "Nothing is sent. FILE holds a TrainingInput or a whole job (YAML or JSON, camelCase or snake_case), what "
        "`pulumi preview --json` prints, the cloudml.yml of R, or a `gcloud ai-platform jobs submit training` command: "
        "alone, or in a script, a Makefile, Markdown or a notebook. A Python program is read, and not executed: the "
        "dict that `projects().jobs().create` sends, or an MLEngineStartTrainingJobOperator.",
    )
    parser.add_argument("file", metavar="FILE", help="the job; - for stdin")
    parser.add_argument("--module", metavar="M", help="Python module to run, such as trainer.task")
    parser.add_argument("--package-uris", metavar="A,B", type=listed, help="gs:// URIs of the packages")
    parser.add_argument("--region", metavar="R", help="region of the job, such as us-central1")
    parser.add_argument("--env", metavar="NAME", help="convert as this environment would send it")
    parser.add_argument("--output", choices=["json", "yaml"], default="json", help="how the CustomJob is written")


def run(args: argparse.Namespace) -> int:
    """Print the job on stdout, the table of its fields and its price on stderr; return 2 when something is refused."""
    source = "stdin" if args.file == "-" else args.file
    text = _decoded(sys.stdin.buffer.read(), source) if args.file == "-" else _read(Path(args.file), source)
    folder = Path() if args.file == "-" else Path(args.file).parent
    held = read_job(text, source, lambda name: _read(_beside(folder, name), name))
    options = {field: value for field, name in _OPTIONS.items() if (value := getattr(args, name))}
    conversion = converted(held, options, source, _target(args.env))
    print(_report(conversion, held.form), file=sys.stderr)
    if conversion.refusals or conversion.job is None:
        return _REFUSED
    print(_written(conversion.job, args.output))
    return 0


def _read(path: Path, source: str) -> str:
    try:
        return _decoded(path.read_bytes(), source)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", source=source) from error
    except ValueError as error:
        raise ConfigError(f"is no path: {error}", source=source) from error


def _decoded(data: bytes, source: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"not UTF-8 at byte {error.start}", source=source, next_step="save it as UTF-8") from error


def _beside(folder: Path, name: str) -> Path:
    """Find the file of --config: where gcloud would be run, else beside the script."""
    try:
        here = Path(name).exists()
    except OSError:  # such as a name that is too long, which reading tells
        here = False
    return Path(name) if here else folder / name


def _target(name: str | None) -> Target:
    """Return what the environment adds to a job.

    When none is named, the job's runtime version chooses the images, and `local` serves a job that has none.
    """
    named = bool(name or os.environ.get("TRAINOPS_ENVIRONMENT"))
    try:
        settings = load_settings(name)
    except ConfigError:
        if named:
            raise
        return Target()  # no environments here: the library alone is installed
    images = Images(settings.image.cpu, settings.image.gpu)
    return Target(settings.substitute, images, settings.service_account, images_replace_runtime=named)


def _report(conversion: Conversion, form: str) -> str:
    lines = [f"read as {form}", "", *_table(conversion)]
    if conversion.job is not None:
        for what, counts in (("machines", conversion.machines), ("GPUs", conversion.accelerators)):
            shown = ", ".join(f"{count} x {kind}" for kind, count in counts.items()) or "none"
            lines += ["", f"{what}: {shown}"] if what == "machines" else [f"{what}: {shown}"]
    if conversion.cost is not None:
        lines += ["", *cost_lines(conversion.cost)]
    lines += ["", *(f"refused: {error}" for error in conversion.refusals)] if conversion.refusals else []
    return "\n".join(lines)


def _table(conversion: Conversion) -> list[str]:
    rows = [("VERDICT", "FIELD", "VALUE", "BECOMES"), *(_row(note) for note in conversion.notes)]
    rows += [(_NONE, name, _value(value), _NOT_LOOKED_AT) for name, value in conversion.not_looked_at.items()]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]) for row in rows]


def _row(note: Note) -> tuple[str, str, str, str]:
    became = ": ".join(part for part in (note.target, note.text) if part)
    return note.verdict, note.field, _value(note.value), became or _NONE


def _value(value: Any) -> str:
    try:
        shown = "" if value is None else json.dumps(value, default=str, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):  # a date as a key, an alias of itself, nested too deep
        shown = f"a {type(value).__name__}"
    return shown if len(shown) <= _SHOWN_VALUE else f"{shown[: _SHOWN_VALUE - 3]}..."


def _written(job: Mapping[str, Any], output: str) -> str:
    text = json.dumps(job, indent=2, ensure_ascii=False)
    if output == "json":
        return text
    # Through JSON, so that a list which pools share is written out in each of them.
    return yaml.safe_dump(json.loads(text), sort_keys=False, width=120, allow_unicode=True).rstrip()
