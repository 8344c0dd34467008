"""The champion's loss on the candidate's held-out text, as the training found it, decides; another champion's never."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trainops.config.plan import PlannedChampion
from trainops.steps.champion import find_champion

if TYPE_CHECKING:
    from tests.integration.promotion.conftest import Registry

    from trainops.policy.promotion_gate import RuleVerdict

OTHER_DATA = "d" * 16


def evaluated(champion: PlannedChampion, **figures: Any) -> dict[str, Any]:
    """A result with what the training found of the champion."""
    found = {"version": champion.version, "uri": champion.uri, "tokens": "gs://my-bucket/tokens/d-b", **figures}
    return {"champion": found}


def improvement(registry: Registry, plan: Any) -> RuleVerdict:
    return next(rule for rule in registry.decide(plan).rules if rule.rule == "improvement")


@pytest.fixture
def champion(registry: Registry) -> PlannedChampion:
    """The version in production, as a run finds it that is resolved now."""
    registry.promote(registry.finish(1, eval_loss=3.1))
    found = find_champion(registry.storage, registry.plan(2), registry.settings)
    assert found is not None
    return found


def test_a_run_finds_the_version_that_its_channel_points_at(registry: Registry, champion: PlannedChampion) -> None:
    at = registry.pointer()
    assert (champion.version, champion.uri, champion.heldout) == (at.version, at.uri, at.heldout)
    assert champion.pointer_generation == registry.channel().generation
    assert find_champion(registry.storage, registry.plan(2, channel="candidate"), registry.settings) is None


@pytest.mark.parametrize(("again", "promoted"), [(3.3, True), (2.9, False)])
def test_the_loss_on_the_same_held_out_data_decides(
    registry: Registry, champion: PlannedChampion, again: float, promoted: bool
) -> None:
    result = evaluated(champion, eval_loss=again, eval_tokens=65536)
    plan = registry.finish(2, eval_loss=3.2, champion=champion, dataset=OTHER_DATA, result=result)
    rule = improvement(registry, plan)
    assert (rule.figures["loss"], rule.figures["champion_loss"]) == (3.2, again)
    assert "evaluated again on the candidate's held-out data" in rule.text
    assert registry.promote(plan).promoted == promoted


def test_with_another_tokenizer_the_losses_per_byte_of_the_same_text_decide(
    registry: Registry, champion: PlannedChampion
) -> None:
    figures = {"eval_loss": 5.0, "eval_tokens": 9, "loss_per_byte": 1.3, "own_loss_per_byte": 1.2}
    plan = registry.finish(
        2, eval_loss=3.2, champion=champion, dataset=OTHER_DATA, result=evaluated(champion, **figures)
    )
    rule = improvement(registry, plan)
    assert (rule.verdict, rule.figures["unit"], rule.figures["champion_loss"]) == ("passed", "nats per byte", 1.3)


def test_a_champion_that_could_not_be_loaded_is_compared_per_byte_and_the_reason_is_told(
    registry: Registry, champion: PlannedChampion
) -> None:
    result = evaluated(champion, error="its weights lack 3")
    plan = registry.finish(2, eval_loss=3.0, champion=champion, dataset=OTHER_DATA, result=result)
    rule = improvement(registry, plan)
    assert rule.figures["champion_loss"] == pytest.approx(3.1 / 2.9)
    assert "it was not evaluated again: its weights lack 3" in rule.text


def test_the_figure_of_a_champion_that_was_replaced_meanwhile_is_not_used(
    registry: Registry, champion: PlannedChampion
) -> None:
    result = evaluated(champion, eval_loss=9.9, eval_tokens=65536)
    plan = registry.finish(3, eval_loss=3.0, champion=champion, dataset=OTHER_DATA, result=result)
    assert registry.decide(plan).promote
    registry.promote(registry.finish(2, eval_loss=2.5))
    rule = improvement(registry, plan)
    assert (rule.verdict, rule.figures["champion_loss"]) == ("refused", pytest.approx(2.5 / 2.9))
    assert f"the channel moved since the run began, when it pointed at {champion.version}" in rule.text
    assert not registry.promote(plan).promoted


def test_a_plan_and_a_result_of_before_are_judged_as_before(registry: Registry, champion: PlannedChampion) -> None:
    plan = registry.finish(2, eval_loss=3.0, dataset=OTHER_DATA)
    stored = registry.run_object(plan, "outcome.json").value["result"]
    assert not {"generation", "champion"} & set(stored), "the fingerprint of an older outcome must stay"
    decision = registry.decide(plan)
    assert decision.promote
    assert "the run's plan names no champion" in decision.reason
    assert {rule.rule: rule.text for rule in decision.rules}["generates"].startswith("not measured")


def test_an_exported_model_that_does_not_load_is_refused(registry: Registry) -> None:
    plan = registry.finish(1, result={"generation": {"loaded": False, "error": "OSError: no weights"}})
    assert not registry.promote(plan).promoted
    assert "does not load: OSError: no weights" in registry.decide(plan).reason
