"""The decision of a run about its version: made once for one outcome and one champion, and kept in `decision.json`."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from trainops import naming
from trainops.config.plan import RunPlan
from trainops.errors import IntegrityError
from trainops.gcp.storage import Storage
from trainops.policy import promotion_gate
from trainops.policy.promotion_gate import Candidate, Champion, Decision, Generation, Rules
from trainops.settings import Settings
from trainops.steps.channels import Channel, read_channel
from trainops.steps.model_versions import read_manifest, version_name
from trainops.steps.outcome import Outcome
from trainops.steps.stored_json import read_model, settle


class Judgement(BaseModel):
    """`decision.json`: the gate's decision and what it was made from."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_version: Literal[1] = Field(default=1, alias="schema", description="Version of this layout.")
    run_key: str = Field(description="Run.")
    generation: int = Field(description="Generation of the run.")
    model: str = Field(description="Name of the model.")
    channel: str = Field(description="Channel that the version asks for.")
    version: str = Field(description="Version that was judged.")
    inputs: str = Field(description="Fingerprint of outcome, rules and planned champion; others mean another decision.")
    pointer_generation: int = Field(description="Storage generation of the channel's pointer that was read; 0: none.")
    champion: str | None = Field(description="Version that it pointed at.")
    thresholds: dict[str, Any] = Field(description="What the rules were asked with.")
    promote: bool = Field(description="May the version take the champion's place?")
    reason: str = Field(description="Why, in a sentence.")
    rules: list[dict[str, Any]] = Field(description="Every rule: its verdict, its figures, and a sentence.")
    decided_at: AwareDatetime = Field(description="When.")

    @property
    def decision(self) -> Decision:
        """The gate's decision."""
        return Decision.from_json({"promote": self.promote, "reason": self.reason, "rules": self.rules})

    def to_json(self) -> dict[str, Any]:
        """The JSON that is stored."""
        return self.model_dump(mode="json", by_alias=True)


def judge(storage: Storage, plan: RunPlan, outcome: Outcome, settings: Settings) -> tuple[Decision, Channel]:
    """Return the decision that holds for the channel as it is now, and that channel.

    The stored decision holds while outcome, rules and the channel's generation are those that it was made from, and
    from the moment on that the version was promoted; else it is made again.
    """
    channel = read_channel(storage, settings.models, plan.promotion.model, plan.promotion.channel)
    uri = f"{naming.run_folder(settings.work, plan.experiment, plan.run_key)}/decision.json"
    asked = _asked(plan, outcome, channel)
    found = read_model(storage, uri, Judgement)
    if found and _holds(found[0], asked, channel):
        return found[0].decision, channel
    decision = _decided(storage, plan, outcome, settings, channel)
    made = Judgement.model_validate({**asked, **decision.to_json(), "decided_at": datetime.now(UTC)})
    settle(storage, uri, made.to_json())
    return decision, channel


def _asked(plan: RunPlan, outcome: Outcome, channel: Channel) -> dict[str, Any]:
    """What a decision is about, as fields of a Judgement."""
    rules = asdict(_rules(plan))
    # Where no champion is named nothing is added, so that decisions of earlier versions hold on.
    planned = {"champion": plan.champion.model_dump(mode="json")} if plan.champion else {}
    return {
        "run_key": plan.run_key,
        "generation": outcome.generation,
        "model": channel.model,
        "channel": channel.name,
        "version": version_name(plan, outcome.generation),
        "inputs": naming.fingerprint({"outcome": outcome.to_json(), "rules": rules, **planned}),
        "pointer_generation": channel.generation,
        "champion": channel.pointer.version if channel.pointer else None,
        "thresholds": rules,
    }


def _holds(stored: Judgement, asked: dict[str, Any], channel: Channel) -> bool:
    if any(getattr(stored, key) != asked[key] for key in ("version", "channel", "model", "inputs")):
        return False
    return stored.pointer_generation == channel.generation or channel.had(stored.version)


def _decided(storage: Storage, plan: RunPlan, outcome: Outcome, settings: Settings, channel: Channel) -> Decision:
    version = version_name(plan, outcome.generation)
    if channel.had(version):
        return Decision(True, [], f"{version} was put into {channel.name} by an earlier try")
    champion = _champion(storage, settings, channel, _evaluation(plan, outcome, channel))
    return promotion_gate.decide(_candidate(plan, outcome, version), champion, _rules(plan))


def _rules(plan: RunPlan) -> Rules:
    asked = plan.promotion
    return Rules(
        promote=asked.promote,
        max_eval_loss=asked.max_eval_loss,
        min_steps=asked.min_steps,
        min_improvement=asked.min_improvement,
        below_unigram_entropy=asked.must_beat_unigram,
        allow_older_data=asked.allow_older_data,
    )


def _candidate(plan: RunPlan, outcome: Outcome, version: str) -> Candidate:
    wrote, champion = outcome.result.generation, outcome.result.champion
    return Candidate(
        version=version,
        data_date=plan.data_date,
        step=outcome.result.step,
        steps=outcome.result.steps,
        eval_loss=outcome.result.eval_loss,
        losses_logged=outcome.losses.logged,
        unigram_entropy=outcome.result.unigram_entropy,
        heldout=outcome.lineage.tokens,
        bytes_per_token=outcome.bytes_per_token,
        loss_per_byte=champion.own_loss_per_byte if champion else None,
        generation=Generation(**wrote.model_dump()) if wrote else None,
    )


def _evaluation(plan: RunPlan, outcome: Outcome, channel: Channel) -> dict[str, Any]:
    """What the training found of the champion on its own held-out data, or why that tells nothing of this champion."""
    found, planned = outcome.result.champion, plan.champion
    if channel.pointer is None:
        return {}
    if planned is None:
        return {"not_evaluated": "the run's plan names no champion"}
    if (planned.version, planned.pointer_generation) != (channel.pointer.version, channel.generation):
        return {"not_evaluated": f"the channel moved since the run began, when it pointed at {planned.version}"}
    if found is None:
        return {"not_evaluated": "the training's result says nothing of it"}
    if found.version != planned.version:
        return {"not_evaluated": f"the training evaluated {found.version}"}
    if found.error or found.eval_loss is None:
        return {"not_evaluated": found.error or "the training's result has no loss of it"}
    if found.loss_per_byte is not None:
        return {"loss_per_byte_on_candidate_data": found.loss_per_byte}
    return {"loss_on_candidate_data": found.eval_loss}


def _champion(storage: Storage, settings: Settings, channel: Channel, evaluation: dict[str, Any]) -> Champion | None:
    if channel.pointer is None:
        return None
    manifest = read_manifest(storage, settings.models, channel.model, channel.pointer.version)
    if manifest is None:
        raise IntegrityError(
            f"{channel.uri} points at {channel.pointer.version}, which is gone or was never complete; point it at "
            f"another with `trainops models rollback {channel.model} --channel {channel.name}`"
        )
    return Champion(
        version=manifest.version,
        data_date=manifest.data_date,
        eval_loss=manifest.eval_loss,
        heldout=manifest.heldout,
        bytes_per_token=manifest.bytes_per_token,
        **evaluation,
    )
