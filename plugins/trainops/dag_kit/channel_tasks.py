"""The tasks of the DAG `promote`: what a person asked of a channel, shown, and done once approved."""

from __future__ import annotations

import logging
from typing import Any, Literal

from airflow.sdk import Asset, AssetAlias, get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException
from pydantic import Field

from trainops.config.model import Config
from trainops.dag_kit.task_errors import final_errors_fail
from trainops.validation import validated

log = logging.getLogger(__name__)

Json = dict[str, Any]

CHANGED = AssetAlias("models_changed_by_hand")
"""Outlet through which the asset of whichever model a person chose is updated."""


class ChannelChange(Config):
    """The conf of a run of `promote`."""

    model: str = Field(min_length=1, description="Name of the model, as `trainops models` lists it.")
    version: str | None = Field(None, description="Version to point the channel at; null: the one before the current.")
    channel: Literal["production", "candidate"] = Field("production", description="Channel to change.")
    reason: str = Field("", max_length=500, description="Why; kept in the channel's history.")


@task(multiple_outputs=False)
@final_errors_fail
def describe_change() -> Json:
    """Find the version that is meant, and say what would change; skipped when the channel points at it already."""
    from trainops.hooks.trainops import TrainopsHook
    from trainops.steps.promotion import find_target

    dag_run: Any = get_current_context()["dag_run"]
    asked = validated(ChannelChange, dag_run.conf or {}, source="conf")
    hook = TrainopsHook()
    channel, target = find_target(hook.services().storage, hook.settings, asked.model, asked.channel, asked.version)
    now = channel.pointer
    if now and now.version == target.version:
        raise AirflowSkipException(f"{asked.channel} of {asked.model} points at {target.version} already")
    was = f"`{now.version}` (data of {now.data_date}, loss {now.eval_loss:.4f})" if now else "nothing"
    text = (
        f"Channel **{asked.channel}** of **{asked.model}** points at {was}. It would point at `{target.version}` "
        f"(data of {target.data_date}, loss {target.eval_loss:.4f}). {asked.reason}"
    )
    log.info("%s", text)
    return {**asked.model_dump(), "version": target.version, "seen": channel.generation, "text": text}


@task(multiple_outputs=False, outlets=[CHANGED])
@final_errors_fail
def change_channel(change: Json, approval: Json | None) -> Json:
    """Point the channel at the version, unless it moved since the person who approved looked at it."""
    from trainops import naming
    from trainops.dag_kit.tasks import announce
    from trainops.hooks.trainops import TrainopsHook
    from trainops.steps.promotion import rollback

    hook = TrainopsHook()
    user = (approval or {}).get("responded_by_user") or {}  # None when somebody marked `approve` as done
    done = rollback(
        hook.services().storage,
        hook.settings,
        change["model"],
        change["channel"],
        to=change["version"],
        by=user.get("name") or user.get("id") or "approved in Airflow",
        reason=change["reason"],
        seen=change["seen"],
    )
    log.info("%s of %s points at %s", done.channel, done.model, done.version)
    announce(Asset(naming.model_asset(done.model)), done.to_json(), through=CHANGED)
    return done.to_json()


@task(multiple_outputs=False)
@final_errors_fail
def read_model(model: str, channel: str = "production") -> Json:
    """Say which version the channel points at; skipped while nothing was promoted to it.

    The event only wakes: by now the channel may point at a later version than its extra tells, and that one is meant.
    """
    from trainops.hooks.trainops import TrainopsHook
    from trainops.steps.channels import read_channel

    for asset, events in get_current_context()["triggering_asset_events"].items():
        for event in events if isinstance(asset, Asset) else ():  # an alias repeats those of its asset
            log.info("%s: %s of %s was pointed at %s: %s", asset.name, *map(event.extra.get, _TOLD))
    hook = TrainopsHook()
    pointer = read_channel(hook.services().storage, hook.settings.models, model, channel).pointer
    if pointer is None:
        raise AirflowSkipException(f"nothing was ever promoted to the channel {channel} of {model}")
    log.info("%s of %s is %s: %s", channel, model, pointer.version, pointer.uri)
    return {"model": model, "channel": channel, "version": pointer.version, "uri": pointer.uri}


_TOLD = ("channel", "model", "version", "reason")
