"""Decisions about versions, and versions in their channel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trainops.errors import IntegrityError, OutputsMissing
from trainops.steps.outcome import check_outputs

if TYPE_CHECKING:
    from tests.integration.promotion.conftest import Registry, Training


def test_the_first_version_is_promoted_whole(registry: Registry) -> None:
    plan = registry.finish()
    assert registry.decide(plan).promote
    done = registry.promote(plan)
    assert done.promoted
    assert done.uri == f"{registry.settings.models}/{registry.model}/versions/{registry.version(plan)}"
    at = registry.pointer()
    assert (at.version, at.uri, at.by, at.history) == (registry.version(plan), done.uri, plan.run_key, ())
    names = {info.uri.removeprefix(f"{done.uri}/"): info for info in registry.storage.list(f"{done.uri}/")}
    manifest = registry.manifest(plan)
    assert manifest is not None
    assert set(names) == {item.name for item in manifest.files} | {"manifest.json"}
    assert all((names[item.name].size, names[item.name].crc32c) == (item.bytes, item.crc32c) for item in manifest.files)
    card = registry.storage.read_bytes(f"{done.uri}/README.md")
    assert card is not None
    for words in ("3.1000", "2026-11-29", "a" * 16, "trainer-0.1.0.tar.gz", "customJobs/1", '"steps": 600', "def f():"):
        assert words in card.data.decode()


def test_the_pointer_holds_what_the_contract_says(registry: Registry) -> None:
    registry.promote(registry.finish())
    document = registry.storage.read_json(f"{registry.settings.models}/{registry.model}/channels/production.json")
    assert document is not None
    promised = {"schema", "model", "version", "uri", "data_date", "eval_loss", "heldout", "promoted_at", "by", "reason"}
    assert promised | {"history"} <= set(document.value)
    assert document.value["heldout"].endswith(f"/tokens/{'a' * 16}-{'b' * 16}")


@pytest.mark.case("C095")
def test_only_a_better_version_replaces_the_champion(registry: Registry) -> None:
    first, worse, better = registry.finish(1), registry.finish(2, eval_loss=3.2), registry.finish(3, eval_loss=3.0)
    registry.promote(first)
    before = registry.channel()
    refused = registry.promote(worse)
    assert not refused.promoted
    assert "improvement of -0.1000" in refused.reason
    assert registry.channel() == before
    assert registry.manifest(worse) is None
    assert registry.promote(better).promoted
    assert registry.placed() == [registry.version(better), registry.version(first)]


def test_older_data_never_replace_newer(registry: Registry) -> None:
    registry.promote(registry.finish(1, day=29))
    old = registry.promote(registry.finish(2, day=28, eval_loss=1.0))
    assert not old.promoted
    assert "data of 2026-11-28 is older" in old.reason


def test_older_data_may_replace_newer_where_the_experiment_says_so(registry: Registry) -> None:
    registry.promote(registry.finish(1, day=29))
    old = registry.promote(registry.finish(2, day=28, eval_loss=1.0, allow_older_data=True))
    assert old.promoted
    assert registry.pointer().data_date.isoformat() == "2026-11-28"
    worse = registry.promote(registry.finish(3, day=27, eval_loss=2.0, allow_older_data=True))
    assert not worse.promoted, "older data are no excuse for a worse model"


def test_a_run_told_never_to_promote_is_judged_and_changes_nothing(registry: Registry) -> None:
    plan = registry.finish(promote="never")
    decision = registry.decide(plan)
    assert [rule.rule for rule in decision.rules if rule.verdict == "refused"] == ["promote"]
    assert not registry.promote(plan).promoted
    assert registry.channel().generation == 0


def test_the_decision_tells_what_was_read(registry: Registry) -> None:
    first, second = registry.finish(1), registry.finish(2, eval_loss=3.0)
    registry.promote(first)
    registry.decide(second)
    document = registry.run_object(second, "decision.json")
    assert document.value["promote"] is True
    assert "better by 0.1000" in document.value["reason"]
    assert document.value["champion"] == registry.version(first)
    assert document.value["pointer_generation"] == registry.channel().generation
    assert len(document.value["rules"]) == 8
    registry.decide(second)
    assert registry.run_object(second, "decision.json") == document


def test_a_decision_about_a_champion_that_is_gone_is_made_again(registry: Registry) -> None:
    slow, fast = registry.finish(1, eval_loss=3.0), registry.finish(2, eval_loss=2.9)
    assert registry.decide(slow).promote
    registry.promote(fast)
    late = registry.promote(slow)
    assert not late.promoted
    assert registry.version(fast) in late.reason


def test_deciding_before_checking_says_so(registry: Registry) -> None:
    with pytest.raises(OutputsMissing, match="clear check_outputs"):
        registry.decide(registry.plan())


def test_a_model_that_changed_after_the_check_is_not_promoted(training: Training, registry: Registry) -> None:
    check_outputs(training.storage, training.plan, 1, training.settings)
    training.write_model(training.weights(8))
    with pytest.raises(IntegrityError, match=r"model\.safetensors differ"):
        registry.promote(training.plan)
    assert registry.channel().generation == 0


def test_a_complete_version_is_never_changed(training: Training, registry: Registry) -> None:
    check_outputs(training.storage, training.plan, 1, training.settings)
    registry.promote(training.plan)
    registry.storage.delete(registry.channel().uri)
    training.write_model(training.weights(8))
    check_outputs(training.storage, training.plan, 1, training.settings)
    with pytest.raises(IntegrityError, match="is complete and holds something else"):
        registry.promote(training.plan)
