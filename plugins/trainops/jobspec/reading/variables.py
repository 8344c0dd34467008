"""Variables of a shell text: what is set in it is put in place, what is not keeps its mark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from trainops.jobspec.reading.untold import COMPUTED, UNSET

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_PLAIN = re.compile(r"\$(?:([A-Za-z_]\w*|[0-9@*#?!])|\{([A-Za-z_]\w*|[0-9]+)\})")
_WITH_DEFAULT = re.compile(r"\$\{([A-Za-z_]\w*|[0-9]+):?[-=]((?:[^{}$`]|`[^`]*`|\$\([^()]*\)|\$\w+|\$\{\w+\})*)\}")
_SUBSTITUTION = re.compile(r"\$\((?:[^()]|\([^()]*\))*\)|\$\{[^}]*\}|`[^`]*`")
_QUOTES = re.compile(r"[\"'\\]")


@dataclass
class Variables:
    """Names and values.

    :param values: what is set; a value may hold marks of what is not told.
    :param branched: names that branches of the script set differently, so that none of their values is told.
    """

    values: dict[str, str]
    branched: set[str] = field(default_factory=set)

    def assign(self, name: str, value: str, *, in_branch: bool) -> None:
        """Set a variable; `in_branch` is inside of if, case or a loop, where it may not come to be."""
        if in_branch and self.values.get(name, value) != value:
            self.branched.add(name)
        elif not in_branch:
            self.branched.discard(name)
        self.values[name] = value

    def at(self, text: str, at: int) -> tuple[str, int] | None:
        """Return the value of the variable or substitution at this position, and where it ends; None for neither."""
        plain = _PLAIN.match(text, at)
        if plain is not None:
            return self._value(plain[1] or plain[2], plain.group()), plain.end()
        default = _WITH_DEFAULT.match(text, at)
        if default is not None:
            value = self._value(default[1], "")
            if value in {UNSET, ""}:
                value = self.expanded(_QUOTES.sub("", default[2]))
            return value, default.end()
        computed = _SUBSTITUTION.match(text, at)
        if computed is None:
            return None
        mark = UNSET if computed.group().startswith("${") else COMPUTED
        return mark + _QUOTES.sub("", computed.group()), computed.end()

    def expanded(self, text: str) -> str:
        """Put values in place in a here-document or the name of a file, where quotes are plain characters."""
        done, at = "", 0
        while at < len(text):
            if text[at] == "\\" and text[at + 1 : at + 2] in {"$", "`", "\\"}:
                done, at = done + text[at + 1], at + 2
                continue
            found = self.at(text, at) if text[at] in "$`" else None
            value, at = found or (text[at], at + 1)
            done += value
        return done

    @staticmethod
    def assignments(words: Sequence[str]) -> list[tuple[str, str]]:
        """Return the assignments that begin a command."""
        found = []
        for word in words:
            match = _ASSIGNMENT.fullmatch(word)
            if match is None:
                break
            found.append((match[1], match[2]))
        return found

    def _value(self, name: str, written: str) -> str:
        value = self.values.get(name)
        if name in self.branched:
            return f"{UNSET}{written} (branches set it differently)"
        if value is None:
            return UNSET + written
        return value
