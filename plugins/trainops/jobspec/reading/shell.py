"""Words of the commands in a shell text, without running any: quotes, continued lines, comments, plain variables."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field

UNSET = "\ue000"
"""Stands before a variable or a substitution whose value the text does not tell."""

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:(\w+)|\{([A-Za-z_]\w*)\})")
_SUBSTITUTION = re.compile(r"\$\((?:[^()]|\([^()]*\))*\)|\$\{[^}]*\}|`[^`]*`")
_CONTINUED = re.compile(r"\\[ \t]*\r?\n")
_SINGLE_QUOTED = re.compile(r"'[^']*'")
_COMMENT = re.compile(r"#[^\n]*")
_FILE_NUMBER = re.compile(r"\s\d$")  # the 2 of 2>&1
_REDIRECTION = re.compile(r"&?[<>]+&?[ \t]*[^\s;&|<>]+")
_SEPARATORS = ";&|<>\n"


@dataclass
class _Scan:
    """A text on its way to words: finished commands, and the one that is being read."""

    text: str
    variables: dict[str, str] = field(default_factory=dict)
    commands: list[list[str]] = field(default_factory=list)
    current: str = ""
    in_double_quotes: bool = False


def commands(text: str) -> list[list[str]]:
    """Return the words of each command of the text; assignments are used, and are no commands.

    :raises ValueError: a quote is not closed.
    """
    scan = _Scan(_CONTINUED.sub(" ", text.replace("\r\n", "\n")))
    position = 0
    while position < len(scan.text):
        position = _step(scan, position)
    _finish(scan)
    return scan.commands


def _step(scan: _Scan, at: int) -> int:
    """Take one character, quoted text, variable or comment; return the position after it."""
    letter = scan.text[at]
    if letter == "\\":
        return _take(scan, scan.text[at : at + 2], at)
    if letter in "$`":
        return _value(scan, at)
    if letter == '"':
        scan.in_double_quotes = not scan.in_double_quotes
    elif not scan.in_double_quotes:
        quoted = _SINGLE_QUOTED.match(scan.text, at)
        if quoted:
            return _take(scan, quoted.group(), at)
        comment = _COMMENT.match(scan.text, at)
        if comment and (not scan.current or scan.current[-1].isspace()):
            return comment.end()
        redirected = _REDIRECTION.match(scan.text, at)
        if redirected:
            scan.current = _FILE_NUMBER.sub("", scan.current)
            return redirected.end()
        if letter in _SEPARATORS:
            _finish(scan)
            return at + 1
    return _take(scan, letter, at)


def _take(scan: _Scan, piece: str, at: int) -> int:
    scan.current += piece
    return at + len(piece)


def _value(scan: _Scan, at: int) -> int:
    found = _VARIABLE.match(scan.text, at)
    name = (found[1] or found[2]) if found else ""
    found = found or _SUBSTITUTION.match(scan.text, at)
    if found is None:
        return _take(scan, scan.text[at], at)
    not_told = UNSET + re.sub(r"[\"'\\]", "", found.group())
    value = scan.variables.get(name, not_told)
    scan.current += _inside_quotes(value) if scan.in_double_quotes else _unquoted(value)
    return found.end()


def _inside_quotes(value: str) -> str:
    return re.sub(r'([\\"])', r"\\\1", value)


def _unquoted(value: str) -> str:
    """Return the value as the words that a shell makes of it; one that is not told stays one word."""
    words = [value] if UNSET in value else value.split()
    return " ".join(shlex.quote(word) for word in words)


def _finish(scan: _Scan) -> None:
    """Read the current text as an assignment or as a command."""
    words = shlex.split(scan.current)
    scan.current = ""
    if words[:1] == ["export"]:
        words = words[1:]
    assigned = _leading_assignments(words)
    if len(assigned) == len(words):
        scan.variables |= dict(assigned)
        return
    scan.commands.append(words[len(assigned) :])


def _leading_assignments(words: list[str]) -> list[tuple[str, str]]:
    found = []
    for word in words:
        match = _ASSIGNMENT.fullmatch(word)
        if match is None:
            break
        found.append((match[1], match[2]))
    return found
