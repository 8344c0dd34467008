"""`trainops models`: what is in the channels of every model, what was, and the way back."""

from __future__ import annotations

import argparse
import getpass
import heapq
import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from trainops.config.origin import CHANNELS
from trainops.errors import AccessError, ConfigError, NotFoundError
from trainops.gcp.storage import Storage
from trainops.settings import Settings, load_settings
from trainops.steps.channels import list_channels, read_channel
from trainops.steps.judgement import Judgement
from trainops.steps.model_versions import VersionManifest, list_versions
from trainops.steps.promotion import rollback
from trainops.steps.refusals import list_refusals


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `models` and what it can do."""
    parser = subparsers.add_parser("models", help="promoted models: list, show, history, rollback")
    parser.set_defaults(run=run)
    parser.add_argument("--output", choices=_OUTPUTS, default=_OUTPUTS[0], help="default: %(default)s")
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    _action(actions, "list", "what the channels of every model point at (the default)")
    for name, text in (
        ("show", "the channels and versions of a model"),
        ("history", "what a channel pointed at and what the gate refused, newest first"),
        ("rollback", "point a channel at the version before, or at a version you name"),
    ):
        action = _action(actions, name, text)
        action.add_argument("model", metavar="MODEL", help="name of the model")
        if name != "show":
            action.add_argument("--channel", choices=CHANNELS, default=CHANNELS[0], help="default: %(default)s")
        if name == "rollback":
            action.add_argument("--to", metavar="VERSION", help="a version that `show` lists")
            action.add_argument("--reason", default="", help="kept in the channel's history")


def run(args: argparse.Namespace) -> int:
    """Do what the command line asks; the answer goes to stdout.

    :raises ConfigError: no such model or version.
    """
    settings = load_settings()
    storage = Storage.connect(settings)
    try:
        answer, text = _ACTIONS[args.action or "list"](storage, settings, args)
    finally:
        storage.close()
    if args.output == "json":
        text = json.dumps(answer, indent=2, ensure_ascii=False)
    if text:
        print(text)
    return 0


def _action(actions: Any, name: str, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=text, description=text)
    # Both `models --output json list` and `models list --output json`: the inner default must not hide the outer value.
    parser.add_argument("--output", choices=_OUTPUTS, default=argparse.SUPPRESS, help=f"default: {_OUTPUTS[0]}")
    return parser


def _list(storage: Storage, settings: Settings, _: argparse.Namespace) -> tuple[Any, str]:
    found = [
        {"model": model, "channel": channel, **pointer.model_dump(mode="json", include=set(_COLUMNS))}
        for model in storage.folders(settings.models)
        for channel, pointer in list_channels(storage, settings.models, model)
    ]
    if not found:
        print(f"no model has been promoted to {settings.models} yet", file=sys.stderr)
        return found, ""
    return found, _table(["model", "channel", *_COLUMNS], found)


def _show(storage: Storage, settings: Settings, args: argparse.Namespace) -> tuple[Any, str]:
    _check_model(storage, settings, args.model)
    channels = dict(list_channels(storage, settings.models, args.model))
    versions = list(list_versions(storage, settings.models, args.model))
    answer = {
        "model": args.model,
        "channels": {name: pointer.version for name, pointer in channels.items()},
        "versions": [version.to_json() for version in versions],
    }
    rows = [_version_row(version, [name for name, at in channels.items() if at.version == version.version])
            for version in versions]  # fmt: skip
    return answer, _table(["version", "data_date", "eval_loss", "steps", "parameters", "channels"], rows)


def _history(storage: Storage, settings: Settings, args: argparse.Namespace) -> tuple[Any, str]:
    _check_model(storage, settings, args.model)
    pointer = read_channel(storage, settings.models, args.model, args.channel).pointer
    placed = [item.model_dump(mode="json") for item in pointer.placements] if pointer else []
    if not placed:
        print(f"nothing was ever promoted to the channel {args.channel} of {args.model}", file=sys.stderr)
    # Both are newest first, and placements stay in the order of the pointer, whatever clocks said.
    refused = [_refused_row(item) for item in _refusals(storage, settings, args)]
    rows = list(heapq.merge(placed, refused, key=_moment, reverse=True))
    shown = [row | {"at": row["promoted_at"] or row["decided_at"]} for row in rows]
    return rows, _table(["version", "data_date", "eval_loss", "at", "by", "how", "reason"], shown) if rows else ""


def _refusals(storage: Storage, settings: Settings, args: argparse.Namespace) -> list[Judgement]:
    """What the gate refused; nothing, with a word about it, for who may read the models alone."""

    def say(line: str) -> None:
        print(line, file=sys.stderr)

    try:
        return list_refusals(storage, settings, args.model, args.channel, say=say)
    except (AccessError, NotFoundError) as error:
        say(f"refusals are not shown, since the runs cannot be read: {error}")
        return []


def _refused_row(decision: Judgement) -> dict[str, Any]:
    """A decision in the form of a placement; the gate's figures tell the data date and the loss."""
    figures = {key: value for rule in decision.rules for key, value in rule["figures"].items()}
    return {
        "version": decision.version,
        "data_date": figures.get("data_date"),
        "eval_loss": figures.get("eval_loss"),
        "promoted_at": None,
        "decided_at": decision.decided_at.isoformat(),
        "by": decision.run_key,
        "reason": decision.reason,
        "how": "refused",
    }


def _moment(row: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(row["promoted_at"] or row["decided_at"])


def _rollback(storage: Storage, settings: Settings, args: argparse.Namespace) -> tuple[Any, str]:
    done = rollback(storage, settings, args.model, args.channel, to=args.to, by=getpass.getuser(), reason=args.reason)
    return done.to_json(), f"{done.model} {done.channel}: {done.version} ({done.reason})\n{done.uri}"


_ACTIONS = {"list": _list, "show": _show, "history": _history, "rollback": _rollback}
_OUTPUTS = ("text", "json")
_COLUMNS = ("version", "data_date", "eval_loss", "promoted_at", "by")


def _check_model(storage: Storage, settings: Settings, model: str) -> None:
    known = storage.folders(settings.models)
    if model not in known:
        raise ConfigError("no such model", key="MODEL", value=model, allowed=known)


def _version_row(version: VersionManifest, channels: list[str]) -> dict[str, Any]:
    return version.model_dump(mode="json") | {"channels": ", ".join(channels) or "-"}


def _table(columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> str:
    heads = [column.replace("_", " ").upper() for column in columns]
    lines = [heads, *([_cell(row[column]) for column in columns] for row in rows)]
    widths = [max(len(line[position]) for line in lines) for position in range(len(columns))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _cell(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)
