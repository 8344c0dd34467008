"""What became of every field, and how a field is refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from trainops.errors import ConfigError

Verdict = Literal["mapped", "defaulted", "changed", "refused"]
POLICIES = ("allow", "warn", "refuse")


@dataclass(frozen=True)
class Note:
    """One row of the translation: a field of the input, and what became of it.

    :param field: dotted path in the input, in REST spelling.
    :param value: what stood there; None when the field was not given.
    :param verdict: mapped; defaulted: not given, and a value was chosen; changed: means or does something else;
        refused: the reason stands in a ConfigError.
    :param target: dotted path in the CustomJob; empty when nothing is sent.
    :param text: one sentence for people; may be empty.
    """

    field: str
    value: Any
    verdict: Verdict
    target: str
    text: str


class Notebook:
    """Collects the notes of one translation, applies the policy for substitutes, and makes its errors.

    :param source: the file, or "conf", that errors name.
    :param policy: allow (substitutes are noted quietly), warn (noted as changed), refuse (a ConfigError).
    """

    def __init__(self, source: str, policy: str) -> None:
        if policy not in POLICIES:
            raise ConfigError("unknown policy", source=source, key="substitute", value=policy, allowed=POLICIES)
        self.source = source
        self.policy = policy
        self.notes: list[Note] = []

    def mapped(self, field: str, value: Any, target: str, text: str = "") -> None:
        """Note that the field is sent with the same meaning."""
        self._add(Note(field, value, "mapped", target, text))

    def defaulted(self, field: str, value: Any, target: str, text: str) -> None:
        """Note that a field was not given, or not whole, and what was taken."""
        self._add(Note(field, value, "defaulted", target, text))

    def changed(self, field: str, value: Any, target: str, text: str) -> None:
        """Note that the field means or does something else from here on."""
        self._add(Note(field, value, "changed", target, text))

    def substituted(
        self, field: str, value: Any, substitute: str, target: str, reason: str, alternatives: Iterable[object]
    ) -> None:
        """Note that `substitute` stands in for `value`.

        :raises ConfigError: the policy refuses substitutes; the error names the alternatives.
        """
        if self.policy == "refuse":
            raise self.error(
                field,
                reason,
                value=value,
                allowed=alternatives,
                next_step=f"write {substitute} yourself, or set substitute to warn in the environment",
            )
        verdict: Verdict = "changed" if self.policy == "warn" else "mapped"
        self._add(Note(field, value, verdict, target, f"{reason}; {substitute} is taken instead"))

    def error(
        self, key: str, problem: str, *, value: object = None, allowed: Iterable[object] = (), next_step: str = ""
    ) -> ConfigError:
        """Return the error that refuses the field at `key`."""
        return ConfigError(problem, source=self.source, key=key, value=value, allowed=allowed, next_step=next_step)

    def _add(self, note: Note) -> None:
        if note not in self.notes:
            self.notes.append(note)
