"""The promotion gate: which version may take the champion's place, and what every rule says."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainops.policy.promotion_gate import Candidate, Champion, Decision, Generation, Rules, decide

GOOD = Candidate(
    version="tiny-new-g1",
    data_date=date(2026, 11, 29),
    step=600,
    steps=600,
    eval_loss=3.0,
    losses_logged=60,
    unigram_entropy=5.9,
    heldout="gs://my-work/tokens/a-b",
    bytes_per_token=3.0,
    generation=Generation(loaded=True, tokens=64, characters=180, finite=True),
)
CHAMPION = Champion(
    version="tiny-old-g1",
    data_date=date(2026, 11, 28),
    eval_loss=3.2,
    heldout="gs://my-work/tokens/a-b",
    bytes_per_token=3.0,
)
RULES = [
    "finite_losses",
    "minimum_steps",
    "maximum_eval_loss",
    "below_unigram_entropy",
    "generates",
    "improvement",
    "data_window",
    "promote",
]


def verdicts(decision: Decision) -> dict[str, str]:
    return {rule.rule: rule.verdict for rule in decision.rules}


def refused(decision: Decision) -> list[str]:
    return [rule.rule for rule in decision.rules if rule.verdict == "refused"]


def test_a_better_version_is_promoted_and_every_rule_says_why() -> None:
    decision = decide(GOOD, CHAMPION, Rules(max_eval_loss=4.0, min_steps=500, min_improvement=0.1))
    assert decision.promote
    assert verdicts(decision) == dict.fromkeys(RULES, "passed")
    assert all(rule.text and rule.figures for rule in decision.rules)
    assert "better by 0.2000 (same held-out data)" in decision.reason


@pytest.mark.parametrize(
    ("generation", "words"),
    [
        (Generation(loaded=False, error="OSError: no weights"), "does not load: OSError: no weights"),
        (Generation(loaded=True, error="ValueError: no room"), "does not generate: ValueError: no room"),
        (Generation(loaded=True, finite=False, error="not finite"), "predictions are not all finite"),
        (Generation(loaded=True, tokens=64, characters=0, finite=True), "generates no text: 64 tokens"),
    ],
)
def test_a_version_that_does_not_load_or_write_is_refused(generation: Generation, words: str) -> None:
    decision = decide(replace(GOOD, generation=generation), None, Rules())
    assert refused(decision) == ["generates"]
    assert words in decision.reason


def test_whether_a_version_writes_is_not_held_against_results_that_do_not_say() -> None:
    decision = decide(replace(GOOD, generation=None), CHAMPION, Rules())
    assert decision.promote
    rule = next(rule for rule in decision.rules if rule.rule == "generates")
    assert (rule.verdict, rule.text[:12]) == ("not_applied", "not measured")


AGAIN = "the champion was evaluated again on the candidate's held-out data"


@pytest.mark.parametrize(
    ("own", "best", "figures", "words"),
    [
        ({}, {"loss_on_candidate_data": 3.1}, (3.0, 3.1, "nats per token"), f"better by 0.1000 ({AGAIN})"),
        # Per byte of each one's own text the champion is far worse (3.2 / 3): what is evaluated again counts.
        ({}, {"loss_on_candidate_data": 2.9}, (3.0, 2.9, "nats per token"), f"is wanted ({AGAIN})"),
        (
            {"loss_per_byte": 1.0},
            {"loss_per_byte_on_candidate_data": 1.1},
            (1.0, 1.1, "nats per byte"),
            f"better by 0.1000 ({AGAIN}, cut by its own tokenizer)",
        ),
        (
            {},
            {"not_evaluated": "out of memory"},
            (1.0, 3.2 / 3, "nats per byte"),
            "losses per byte of text are compared; it was not evaluated again: out of memory",
        ),
    ],
)
def test_on_other_held_out_data_the_sentence_says_what_was_compared(
    own: dict[str, Any], best: dict[str, Any], figures: tuple[float, float, str], words: str
) -> None:
    champion = replace(CHAMPION, heldout="gs://my-work/tokens/c-b", **best)
    rule = next(rule for rule in decide(replace(GOOD, **own), champion, Rules()).rules if rule.rule == "improvement")
    assert (rule.figures["loss"], rule.figures["champion_loss"], rule.figures["unit"]) == pytest.approx(figures)
    assert words in rule.text


def test_the_first_version_of_a_channel_needs_no_improvement() -> None:
    decision = decide(GOOD, None, Rules())
    assert decision.promote
    assert verdicts(decision)["improvement"] == verdicts(decision)["data_window"] == "not_applied"
    assert decision.reason == "there is no champion yet"


@pytest.mark.parametrize(
    ("change", "rules", "rule", "words"),
    [
        ({"losses_not_finite": 2}, Rules(), "finite_losses", "2 of 60 logged losses are not finite"),
        ({"step": 599}, Rules(), "minimum_steps", "trained 599 steps, at least 600 wanted"),
        ({}, Rules(min_steps=601), "minimum_steps", "at least 601"),
        ({}, Rules(max_eval_loss=2.9), "maximum_eval_loss", "3.0000 is over the limit of 2.9000"),
        ({"unigram_entropy": 3.0}, Rules(), "below_unigram_entropy", "it learned no context"),
        ({"unigram_entropy": None}, Rules(), "below_unigram_entropy", "is not known"),
        ({"eval_loss": 3.2}, Rules(), "improvement", "improvement of 0.0000 where some is wanted"),
        ({"eval_loss": 3.4}, Rules(), "improvement", "improvement of -0.2000"),
        ({}, Rules(min_improvement=0.3), "improvement", "where at least 0.3000 is wanted"),
        ({"data_date": date(2026, 11, 27)}, Rules(), "data_window", "2026-11-27 is older than the champion's"),
        ({}, Rules(promote="never"), "promote", "told never to promote"),
    ],
)
def test_each_rule_alone_refuses(change: dict[str, Any], rules: Rules, rule: str, words: str) -> None:
    decision = decide(replace(GOOD, **change), CHAMPION, rules)
    assert not decision.promote
    assert refused(decision) == [rule]
    assert words in decision.reason


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_not_a_number_is_refused_by_every_rule_that_looks_at_it(loss: float) -> None:
    decision = decide(replace(GOOD, eval_loss=loss), CHAMPION, Rules(max_eval_loss=9.0))
    assert refused(decision) == ["finite_losses", "maximum_eval_loss", "below_unigram_entropy", "improvement"]
    assert json.loads(json.dumps(decision.to_json(), allow_nan=False))["rules"][0]["figures"]["eval_loss"] == str(loss)


def test_fewer_steps_than_planned_are_enough_when_the_rules_name_a_number() -> None:
    assert decide(replace(GOOD, step=100), CHAMPION, Rules(min_steps=100)).promote


def test_thresholds_that_are_switched_off_refuse_nothing() -> None:
    weak = replace(GOOD, unigram_entropy=2.0)
    decision = decide(weak, None, Rules(below_unigram_entropy=False))
    assert decision.promote
    assert verdicts(decision)["below_unigram_entropy"] == verdicts(decision)["maximum_eval_loss"] == "not_applied"


def test_older_data_may_replace_newer_only_when_told() -> None:
    old = replace(GOOD, data_date=date(2020, 1, 1))
    assert not decide(old, CHAMPION, Rules()).promote
    assert decide(old, CHAMPION, Rules(allow_older_data=True)).promote


def test_other_held_out_data_are_compared_per_byte_and_it_is_said() -> None:
    # 3.3 / 3.3 = 1.0 nats a byte is better than 3.2 / 3.0, although 3.3 is the larger loss per token.
    other = replace(GOOD, heldout="gs://my-work/tokens/c-d", eval_loss=3.3, bytes_per_token=3.3)
    decision = decide(other, CHAMPION, Rules())
    assert decision.promote
    figures = next(rule.figures for rule in decision.rules if rule.rule == "improvement")
    assert figures["unit"] == "nats per byte"
    assert figures["improvement"] == pytest.approx(3.2 / 3.0 - 1.0)
    assert "the champion's held-out data differ" in decision.reason


@pytest.mark.parametrize("heldout", ["gs://my-work/tokens/c-d", None])
def test_losses_that_cannot_be_compared_promote_nothing(heldout: str | None) -> None:
    decision = decide(replace(GOOD, heldout=heldout, bytes_per_token=None), CHAMPION, Rules())
    assert refused(decision) == ["improvement"]
    assert "cannot be compared" in decision.reason


def test_a_champion_evaluated_again_on_the_new_data_is_compared_per_token() -> None:
    other = replace(GOOD, heldout="gs://my-work/tokens/c-d", eval_loss=3.3, bytes_per_token=None)
    decision = decide(other, replace(CHAMPION, loss_on_candidate_data=3.5), Rules())
    assert decision.promote
    assert "evaluated again" in decision.reason


def test_a_decision_survives_its_json() -> None:
    decision = decide(GOOD, CHAMPION, Rules(promote="never"))
    assert Decision.from_json(json.loads(json.dumps(decision.to_json()))) == decision


losses = st.floats(allow_nan=True, allow_infinity=True)
dates = st.dates(min_value=date(2026, 1, 1), max_value=date(2026, 1, 5))


@given(loss=losses, best=st.floats(0, 9), day=dates, best_day=dates, gain=st.floats(0, 1), step=st.integers(0, 700))
def test_what_is_promoted_is_finite_better_trained_and_not_older(
    loss: float, best: float, day: date, best_day: date, gain: float, step: int
) -> None:
    candidate = replace(GOOD, eval_loss=loss, data_date=day, step=step)
    champion = replace(CHAMPION, eval_loss=best, data_date=best_day)
    decision = decide(candidate, champion, Rules(min_improvement=gain))
    should = math.isfinite(loss) and loss < best and best - loss >= gain and loss < 5.9 and day >= best_day
    assert decision.promote == (should and step >= 600)
    assert decision.promote == (not refused(decision))
    assert [rule.rule for rule in decision.rules] == RULES


@given(first=st.floats(0.1, 5), second=st.floats(0.1, 5))
def test_of_two_versions_never_both_may_replace_the_other(first: float, second: float) -> None:
    def may(loss: float, champion: float) -> bool:
        return decide(replace(GOOD, eval_loss=loss), replace(CHAMPION, eval_loss=champion), Rules()).promote

    same_day = may(first, second), may(second, first)
    assert not all(same_day)
