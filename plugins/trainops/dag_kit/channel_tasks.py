"""The tasks of the DAG `promote`: what a person asked of a channel, shown, and done once approved."""

from __future__ import annotations

import logging
from typing import Any, Literal

from airflow.sdk import get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException
from pydantic import Field

from trainops.config.model import Config
from trainops.dag_kit.task_errors import final_errors_fail
from trainops.validation import validated

log = logging.getLogger(__name__)

Json = dict[str, Any]


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


@task(multiple_outputs=False)
@final_errors_fail
def change_channel(change: Json, approval: Json | None) -> Json:
    """Point the channel at the version, unless it moved since the person who approved looked at it."""
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
    return done.to_json()
