"""May this model version take the champion's place? A pure decision, one verdict for every rule.

Every rule is asked, also after one has refused, so that a person sees all that is wrong at once. A rule that cannot
apply (no threshold set, no champion yet) says so and refuses nothing.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Literal

Verdict = Literal["passed", "refused", "not_applied"]


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What a version must show; `None` switches a threshold off."""

    promote: Literal["auto", "never"] = "auto"
    """`never`: judge and record, but leave the pointer alone."""

    max_eval_loss: float | None = None
    """Largest evaluation loss that may be promoted, in nats per token."""

    min_steps: int | None = None
    """Fewest training steps; without it, the steps that the plan asked for."""

    min_improvement: float = 0.0
    """By how much the loss must be lower than the champion's, in nats per token (per byte when the held-out data
    differ). With 0 it must still be lower."""

    below_unigram_entropy: bool = True
    """Whether the evaluation loss must be under the unigram entropy of the held-out tokens."""

    allow_older_data: bool = False
    """Whether a version of an older data date may replace a newer one."""


@dataclass(frozen=True, kw_only=True)
class Generation:
    """What an exported model wrote, once it was loaded from its files."""

    loaded: bool
    tokens: int = 0
    """Tokens that it generated."""
    characters: int = 0
    """Characters of its text, without white space at both ends."""
    finite: bool | None = None
    """Whether all its predictions were finite; None when it made none."""
    error: str | None = None
    """Why it does not load or generate."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A version that asks to be promoted, and its figures."""

    version: str
    data_date: date
    step: int
    steps: int
    eval_loss: float
    """Nats per token over the held-out tokens."""
    losses_logged: int = 0
    """How many losses the training logged."""
    losses_not_finite: int = 0
    """How many of them were NaN or infinite."""
    unigram_entropy: float | None = None
    """Nats per token over the same held-out tokens."""
    heldout: str | None = None
    """Folder of the tokens that it was evaluated on; None when nobody knows."""
    bytes_per_token: float | None = None
    loss_per_byte: float | None = None
    """Nats per byte of its held-out text, when the champion was evaluated again on it with another tokenizer."""
    generation: Generation | None = None
    """What the exported model wrote; None when it was not asked to."""


@dataclass(frozen=True, kw_only=True)
class Champion:
    """The version that the pointer shows now."""

    version: str
    data_date: date
    eval_loss: float
    """Nats per token over its own held-out tokens."""
    heldout: str | None = None
    bytes_per_token: float | None = None
    loss_on_candidate_data: float | None = None
    """Nats per token over the candidate's held-out tokens, when it was evaluated again on them."""
    loss_per_byte_on_candidate_data: float | None = None
    """Nats per byte of the candidate's held-out text, when it was evaluated again on it with its own tokenizer."""
    not_evaluated: str = ""
    """Why it was not evaluated again; a part of a sentence."""


@dataclass(frozen=True)
class RuleVerdict:
    """What one rule says, the figures it looked at, and the same as a sentence."""

    rule: str
    verdict: Verdict
    figures: dict[str, Any]
    text: str


@dataclass(frozen=True)
class Decision:
    """The gate's answer; `reason` is one sentence for the log, the pointer and the person who asks."""

    promote: bool
    rules: list[RuleVerdict]
    reason: str

    def to_json(self) -> dict[str, Any]:
        """As a JSON object; a figure that is not finite becomes its name, since JSON has no number for it."""
        rules = [asdict(rule) | {"figures": {k: _plain(v) for k, v in rule.figures.items()}} for rule in self.rules]
        return {"promote": self.promote, "reason": self.reason, "rules": rules}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Decision:
        """The reverse of `to_json`."""
        return cls(value["promote"], [RuleVerdict(**rule) for rule in value["rules"]], value["reason"])


def decide(candidate: Candidate, champion: Champion | None, rules: Rules) -> Decision:
    """Judge `candidate` against `champion` (None: the channel is empty) by every rule."""
    verdicts = [
        _finite_losses(candidate),
        _minimum_steps(candidate, rules),
        _maximum_eval_loss(candidate, rules),
        _below_unigram_entropy(candidate, rules),
        _generates(candidate),
        _improvement(candidate, champion, rules),
        _data_window(candidate, champion, rules),
        _allowed(rules),
    ]
    refusals = [verdict.text for verdict in verdicts if verdict.verdict == "refused"]
    if refusals:
        return Decision(False, verdicts, "; ".join(refusals))
    improvement = next(verdict for verdict in verdicts if verdict.rule == "improvement")
    return Decision(True, verdicts, improvement.text)


def _finite_losses(candidate: Candidate) -> RuleVerdict:
    logged, bad = candidate.losses_logged, candidate.losses_not_finite
    figures = {"eval_loss": candidate.eval_loss, "logged": logged, "not_finite": bad}
    if not math.isfinite(candidate.eval_loss):
        return RuleVerdict("finite_losses", "refused", figures, f"the evaluation loss is {candidate.eval_loss}")
    if bad:
        return RuleVerdict("finite_losses", "refused", figures, f"{bad} of {logged} logged losses are not finite")
    return RuleVerdict("finite_losses", "passed", figures, f"all {logged} logged losses are finite")


def _minimum_steps(candidate: Candidate, rules: Rules) -> RuleVerdict:
    least = candidate.steps if rules.min_steps is None else rules.min_steps
    figures = {"step": candidate.step, "min_steps": least}
    if candidate.step < least:
        return RuleVerdict(
            "minimum_steps", "refused", figures, f"trained {candidate.step} steps, at least {least} wanted"
        )
    return RuleVerdict("minimum_steps", "passed", figures, f"trained {candidate.step} steps of at least {least}")


def _maximum_eval_loss(candidate: Candidate, rules: Rules) -> RuleVerdict:
    figures = {"eval_loss": candidate.eval_loss, "max_eval_loss": rules.max_eval_loss}
    if rules.max_eval_loss is None:
        return RuleVerdict("maximum_eval_loss", "not_applied", figures, "no largest evaluation loss is set")
    # `not <=`, so that NaN is refused here too.
    if not candidate.eval_loss <= rules.max_eval_loss:
        text = f"evaluation loss {_show(candidate.eval_loss)} is over the limit of {_show(rules.max_eval_loss)}"
        return RuleVerdict("maximum_eval_loss", "refused", figures, text)
    text = f"evaluation loss {_show(candidate.eval_loss)} is within the limit of {_show(rules.max_eval_loss)}"
    return RuleVerdict("maximum_eval_loss", "passed", figures, text)


def _below_unigram_entropy(candidate: Candidate, rules: Rules) -> RuleVerdict:
    name = "below_unigram_entropy"
    loss, entropy = candidate.eval_loss, candidate.unigram_entropy
    figures = {"eval_loss": loss, "unigram_entropy": entropy}
    if not rules.below_unigram_entropy:
        return RuleVerdict(name, "not_applied", figures, "the rule is switched off")
    if entropy is None:
        return RuleVerdict(name, "refused", figures, "the unigram entropy of the held-out text is not known")
    if not loss < entropy:
        text = f"evaluation loss {_show(loss)} is not below the unigram entropy {_show(entropy)}: it learned no context"
        return RuleVerdict(name, "refused", figures, text)
    text = f"evaluation loss {_show(loss)} is below the unigram entropy {_show(entropy)}"
    return RuleVerdict(name, "passed", figures, text)


def _generates(candidate: Candidate) -> RuleVerdict:
    found = candidate.generation
    if found is None:  # results of before, and of trainers that are not Trainops' own
        return RuleVerdict("generates", "not_applied", {}, "not measured: the training did not try its exported model")
    figures = asdict(found)
    if not found.loaded:
        return RuleVerdict("generates", "refused", figures, f"the exported model does not load: {found.error}")
    if found.finite is False:
        return RuleVerdict("generates", "refused", figures, "the exported model's predictions are not all finite")
    if found.error is not None:
        return RuleVerdict("generates", "refused", figures, f"the exported model does not generate: {found.error}")
    if not found.characters:
        text = f"the exported model generates no text: {found.tokens} tokens, all of them white space or the end"
        return RuleVerdict("generates", "refused", figures, text)
    text = f"the exported model loads and generates: {found.tokens} tokens, {found.characters} characters, all finite"
    return RuleVerdict("generates", "passed", figures, text)


def _improvement(candidate: Candidate, champion: Champion | None, rules: Rules) -> RuleVerdict:
    if champion is None:
        figures: dict[str, Any] = {"eval_loss": candidate.eval_loss, "champion": None}
        return RuleVerdict("improvement", "not_applied", figures, "there is no champion yet")
    compared = _comparable(candidate, champion)
    if compared is None:
        figures = {
            "eval_loss": candidate.eval_loss,
            "heldout": candidate.heldout,
            "champion": champion.version,
            "champion_eval_loss": champion.eval_loss,
            "champion_heldout": champion.heldout,
        }
        text = (
            f"champion {champion.version} was evaluated on other held-out data, and its loss per byte is not known, "
            f"so the two cannot be compared{_why_not(champion)}"
        )
        return RuleVerdict("improvement", "refused", figures, text)
    return _judged_improvement(compared, champion, rules)


@dataclass(frozen=True)
class _Compared:
    """Two losses that may be compared: in which unit, and why they may."""

    loss: float
    champion_loss: float
    unit: str
    basis: str


def _comparable(candidate: Candidate, champion: Champion) -> _Compared | None:
    """The two losses on common ground: the same held-out text, else per byte of each one's own held-out text.

    Nats per token of two token sets mean different things (another tokenizer cuts other tokens); nats per byte do not.
    """
    if champion.loss_on_candidate_data is not None:
        return _Compared(candidate.eval_loss, champion.loss_on_candidate_data, "nats per token", _AGAIN)
    if champion.loss_per_byte_on_candidate_data is not None and candidate.loss_per_byte is not None:
        basis = f"{_AGAIN}, cut by its own tokenizer"
        return _Compared(candidate.loss_per_byte, champion.loss_per_byte_on_candidate_data, "nats per byte", basis)
    if candidate.heldout is not None and candidate.heldout == champion.heldout:
        return _Compared(candidate.eval_loss, champion.eval_loss, "nats per token", "same held-out data")
    if not candidate.bytes_per_token or not champion.bytes_per_token:
        return None
    basis = f"the champion's held-out data differ, so the losses per byte of text are compared{_why_not(champion)}"
    return _Compared(
        candidate.eval_loss / candidate.bytes_per_token,
        champion.eval_loss / champion.bytes_per_token,
        "nats per byte",
        basis,
    )


_AGAIN = "the champion was evaluated again on the candidate's held-out data"


def _why_not(champion: Champion) -> str:
    return f"; it was not evaluated again: {champion.not_evaluated}" if champion.not_evaluated else ""


def _judged_improvement(compared: _Compared, champion: Champion, rules: Rules) -> RuleVerdict:
    gain = compared.champion_loss - compared.loss
    figures = {
        "loss": compared.loss,
        "champion_loss": compared.champion_loss,
        "unit": compared.unit,
        "improvement": gain,
        "min_improvement": rules.min_improvement,
        "champion": champion.version,
        "basis": compared.basis,
    }
    losses = (
        f"{_show(compared.loss)} against {_show(compared.champion_loss)} {compared.unit} of champion {champion.version}"
    )
    if gain > 0 and gain >= rules.min_improvement:
        text = f"{losses} is better by {_show(gain)} ({compared.basis})"
        return RuleVerdict("improvement", "passed", figures, text)
    wanted = f"at least {_show(rules.min_improvement)}" if rules.min_improvement > 0 else "some"
    text = f"{losses} is an improvement of {_show(gain)} where {wanted} is wanted ({compared.basis})"
    return RuleVerdict("improvement", "refused", figures, text)


def _data_window(candidate: Candidate, champion: Champion | None, rules: Rules) -> RuleVerdict:
    figures = {
        "data_date": candidate.data_date.isoformat(),
        "champion_data_date": champion.data_date.isoformat() if champion else None,
    }
    if champion is None:
        return RuleVerdict("data_window", "not_applied", figures, "there is no champion yet")
    if candidate.data_date >= champion.data_date:
        text = f"data of {candidate.data_date} is not older than the champion's of {champion.data_date}"
        return RuleVerdict("data_window", "passed", figures, text)
    older = f"data of {candidate.data_date} is older than the champion's of {champion.data_date}"
    if rules.allow_older_data:
        return RuleVerdict("data_window", "passed", figures, f"{older}, which is allowed here")
    return RuleVerdict("data_window", "refused", figures, older)


def _allowed(rules: Rules) -> RuleVerdict:
    figures = {"promote": rules.promote}
    if rules.promote == "never":
        return RuleVerdict("promote", "refused", figures, "this run is told never to promote")
    return RuleVerdict("promote", "passed", figures, "this run may promote")


def _show(number: float) -> str:
    return f"{number:.4f}"


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
