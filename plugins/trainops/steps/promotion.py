"""Deciding about a version, promoting it, and going back.

`decide` judges and writes `decision.json` with all that it read. `promote` makes the version complete and swaps the
channel's pointer against the generation that the decision read; when the channel moved meanwhile it decides again. Both
can be repeated after a crash at any point and end the same: the swap is the last write, and a version that was in the
channel once is never put there again by its run, so that a retry does not undo a rollback.
"""

from __future__ import annotations

import logging
import random
import time
from dataclasses import asdict, dataclass
from typing import Any

from trainops.config.plan import RunPlan
from trainops.errors import ConfigError, TransientError, WriteConflict
from trainops.gcp.storage import Storage
from trainops.policy.promotion_gate import Decision
from trainops.settings import Settings
from trainops.steps.channels import Channel, read_channel, swap
from trainops.steps.judgement import judge
from trainops.steps.model_versions import (
    VersionManifest,
    folder_of,
    list_versions,
    publish,
    read_manifest,
    version_name,
)
from trainops.steps.outcome import read_outcome

ROUNDS = 100
"""Races for one channel that are played again before giving up; in each of them somebody else did get promoted."""

LONGEST_PAUSE = 1.0
"""Seconds between two rounds, at most: Cloud Storage takes about one write a second of an object."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Promoted:
    """How a promotion or a rollback ended; `promoted` says whether the channel points at `version` now."""

    model: str
    channel: str
    version: str
    uri: str
    promoted: bool
    reason: str
    pointer_generation: int

    def to_json(self) -> dict[str, Any]:
        """As a small JSON object."""
        return asdict(self)


def decide(storage: Storage, plan: RunPlan, generation: int, settings: Settings) -> Decision:
    """Judge what `check_outputs` found against the channel's champion, and write `decision.json`.

    Deciding again about the same outcome and the same champion returns the decision that stands there.

    :raises OutputsMissing: `check_outputs` has not run for this generation.
    """
    decision, _ = judge(storage, plan, read_outcome(storage, plan, generation, settings), settings)
    for rule in decision.rules:
        log.info("%-12s %-22s %s", rule.verdict, rule.rule, rule.text)
    log.info("%s: %s", "promote" if decision.promote else "do not promote", decision.reason)
    return decision


def promote(storage: Storage, plan: RunPlan, generation: int, settings: Settings, *, by: str) -> Promoted:
    """Put the version of this generation into its channel, when the decision allows it.

    :param by: run key, or the person who approved.
    :raises TransientError: the channel kept moving; asking again helps.
    """
    outcome = read_outcome(storage, plan, generation, settings)
    version = version_name(plan, generation)
    manifest: VersionManifest | None = None
    for number in range(ROUNDS):
        decision, channel = judge(storage, plan, outcome, settings)
        if channel.had(version):
            return _ended(channel, version, _already(channel, version))
        if not decision.promote:
            log.info("not promoted: %s", decision.reason)
            return _ended(channel, version, decision.reason)
        manifest = manifest or publish(storage, plan, outcome, settings)
        try:
            after = swap(storage, channel, manifest, by=by, reason=decision.reason, how="promoted")
        except WriteConflict:
            log.info("%s moved since the decision; deciding again", channel.uri)
            _pause(number)
            continue
        log.info("%s now points at %s", after.uri, version)
        return _ended(after, version, decision.reason)
    raise TransientError(f"{plan.promotion.model}: the channel moved {ROUNDS} times between decision and swap")


def rollback(
    storage: Storage,
    settings: Settings,
    model: str,
    channel: str,
    *,
    to: str | None = None,
    by: str,
    reason: str = "",
    seen: int | None = None,
) -> Promoted:
    """Point the channel at the version before its current one, or at `to`, whatever the gate would say.

    Repeating it with `to` changes nothing more; without, it goes one version further back.

    :param seen: storage generation of the pointer that the person looked at; None: whatever is there now.
    :raises ConfigError: no such model or version, nothing to go back to, or the channel moved since it was seen.
    """
    for number in range(ROUNDS):
        before, target = find_target(storage, settings, model, channel, to)
        if before.pointer and before.pointer.version == target.version:
            return _ended(before, target.version, "it was there already")
        if seen is not None and before.generation != seen:
            raise _moved(before)
        said = reason or _said(before, target)
        try:
            after = swap(storage, before, target, by=by, reason=said, how="set by hand")
        except WriteConflict:
            _pause(number)
            continue
        log.info("%s now points at %s", after.uri, target.version)
        return _ended(after, target.version, said)
    raise TransientError(f"{model}: the channel moved {ROUNDS} times; try again")


def find_target(
    storage: Storage, settings: Settings, model: str, channel: str, to: str | None = None
) -> tuple[Channel, VersionManifest]:
    """Return the channel as it is, and the version that `rollback` would point it at.

    :raises ConfigError: no such model or version, or nothing to go back to.
    """
    found = read_channel(storage, settings.models, model, channel)
    if found.pointer is None:
        _check_model(storage, settings, model)
    version = to if to is not None else _previous(found)
    manifest = read_manifest(storage, settings.models, model, version)
    if manifest is None:
        _check_model(storage, settings, model)
        names = [item.version for item in list_versions(storage, settings.models, model)]
        raise ConfigError("no such version", key="version", value=version, allowed=names)
    return found, manifest


def _previous(channel: Channel) -> str:
    if channel.pointer is None:
        raise ConfigError(f"nothing was ever promoted to the channel {channel.name}", key="model", value=channel.model)
    previous = channel.pointer.before_current()
    if previous is None:
        raise ConfigError(
            f"{channel.pointer.version} is the first version of the channel {channel.name}: nothing to go back to",
            key="model",
            value=channel.model,
            next_step="name a version with --to",
        )
    return previous.version


def _check_model(storage: Storage, settings: Settings, model: str) -> None:
    known = storage.folders(settings.models)
    if model not in known:
        raise ConfigError("no such model", key="model", value=model, allowed=known)


def _moved(channel: Channel) -> ConfigError:
    now = channel.pointer.version if channel.pointer else "nothing"
    return ConfigError(
        f"the channel {channel.name} moved since it was looked at, and points at {now}",
        key="model",
        value=channel.model,
        next_step="look again, and ask again if it still is what you want",
    )


def _said(before: Channel, target: VersionManifest) -> str:
    if before.pointer is None:
        return "set by hand in an empty channel"
    older = before.pointer.data_date > target.data_date
    note = f", to older data of {target.data_date}" if older else ""
    return f"set by hand in place of {before.pointer.version}{note}"


def _ended(channel: Channel, version: str, reason: str) -> Promoted:
    return Promoted(
        model=channel.model,
        channel=channel.name,
        version=version,
        uri=folder_of(channel.models, channel.model, version),
        promoted=channel.pointer is not None and channel.pointer.version == version,
        reason=reason,
        pointer_generation=channel.generation,
    )


def _already(channel: Channel, version: str) -> str:
    if channel.pointer and channel.pointer.version == version:
        return "promoted by an earlier try"
    return f"promoted by an earlier try, and replaced since by {channel.pointer.version if channel.pointer else None}"


def _pause(number: int) -> None:
    time.sleep(random.uniform(0, min(LONGEST_PAUSE, 0.01 * 2**number)))
