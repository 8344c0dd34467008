"""Commands in a shell text, without running any: quotes, continued lines, comments, variables, here-documents."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from trainops.jobspec.reading.here_documents import HereDocument, here_document, target_of
from trainops.jobspec.reading.untold import COMPUTED, UNSET, is_untold
from trainops.jobspec.reading.variables import Variables

_CONTINUED = re.compile(r"\\[ \t]*\r?\n")
_SINGLE_QUOTED = re.compile(r"'[^']*'")
_COMMENT = re.compile(r"#[^\n]*")
_FILE_NUMBER = re.compile(r"\s\d$")  # the 2 of 2>&1
_REDIRECTION = re.compile(r"&?(?P<sign>[<>]+)&?[ \t]*(?P<name>\"[^\"\n]*\"|'[^'\n]*'|[^\s;&|<>]+)")
_SEPARATORS = ";&|<>\n"
_KEYWORDS = {"do", "then", "else", "elif", "if", "while", "until", "{", "!", "time", "sudo", "exec"}
_DECLARING = {"export", "local", "readonly", "declare", "typeset"}
_BLOCKS = {"if": 1, "while": 1, "until": 1, "for": 1, "case": 1, "fi": -1, "done": -1, "esac": -1}


@dataclass(frozen=True)
class Script:
    """What a shell text does, as far as it is told.

    :param commands: words of each command; assignments are used, and are no commands.
    :param files: name -> text of files that the script writes with here-documents.
    """

    commands: list[list[str]]
    files: dict[str, str]

    def file(self, name: str) -> str | None:
        """Return the text that the script writes into the file `name`; None when it writes no such file."""
        return self.files.get(posixpath.normpath(name))


@dataclass
class _Scan:
    """A text on its way to words: finished commands, and the one that is being read."""

    text: str
    variables: Variables
    script: Script = field(default_factory=lambda: Script([], {}))
    current: str = ""
    in_double_quotes: bool = False
    depth: int = 0
    target: str = ""
    documents: list[HereDocument] = field(default_factory=list)


def read_script(text: str, known: Mapping[str, str] | None = None) -> Script:
    """Return the commands of the text, and the files that it writes.

    :param known: variables that are set outside of the text.
    :raises ValueError: a quote is not closed.
    """
    scan = _Scan(text.replace("\r\n", "\n") + "\n", Variables(dict(known or {})))
    position = 0
    while position < len(scan.text):
        position = _step(scan, position)
    _finish(scan)
    return scan.script


def _step(scan: _Scan, at: int) -> int:
    """Take one character, quoted text, variable or comment; return the position after it."""
    letter = scan.text[at]
    if letter == "\\":
        continued = _CONTINUED.match(scan.text, at)
        return _take(scan, " ", continued.end()) if continued else _take(scan, scan.text[at : at + 2], at + 2)
    if letter in "$`":
        return _value(scan, at)
    if letter == '"':
        scan.in_double_quotes = not scan.in_double_quotes
    elif not scan.in_double_quotes:
        quoted = _SINGLE_QUOTED.match(scan.text, at)
        if quoted:
            return _take(scan, quoted.group(), quoted.end())
        comment = _COMMENT.match(scan.text, at)
        if comment and (not scan.current or scan.current[-1].isspace()):
            return comment.end()
        return _operator(scan, at)
    return _take(scan, letter, at + 1)


def _operator(scan: _Scan, at: int) -> int:
    document = here_document(scan.text, at)
    if document is not None:
        scan.documents.append(document)
        return document.end_of_word
    redirected = _REDIRECTION.match(scan.text, at)
    if redirected:
        scan.current = _FILE_NUMBER.sub("", scan.current)
        if redirected["sign"] == ">":
            scan.target = scan.variables.expanded(redirected["name"].strip("\"'"))
        return redirected.end()
    if scan.text[at] == "\n" and scan.documents:
        return _write_file(scan, at + 1)
    if scan.text[at] in _SEPARATORS:
        _finish(scan)
        return at + 1
    return _take(scan, scan.text[at], at + 1)


def _take(scan: _Scan, piece: str, end: int) -> int:
    scan.current += piece
    return end


def _value(scan: _Scan, at: int) -> int:
    found = scan.variables.at(scan.text, at)
    if found is None:
        return _take(scan, scan.text[at], at + 1)
    value, end = found
    return _take(scan, _inside_quotes(value) if scan.in_double_quotes else _unquoted(value), end)


def _inside_quotes(value: str) -> str:
    return re.sub(r'([\\"])', r"\\\1", value)


def _unquoted(value: str) -> str:
    """Return the value as the words that a shell makes of it; one that is not told stays one word."""
    words = [value] if is_untold(value) else value.split()
    return " ".join(shlex.quote(word) for word in words)


def _write_file(scan: _Scan, at: int) -> int:
    """Take the here-documents that begin at this line, and end the command that they belong to."""
    text = ""
    for document in scan.documents:
        text, at = document.read(scan.text, at)
        text = text if document.is_literal else scan.variables.expanded(text)
    name = scan.target or target_of(shlex.split(scan.current))
    if name:
        scan.script.files[posixpath.normpath(name)] = text
    scan.documents.clear()
    _finish(scan)
    return at


def _finish(scan: _Scan) -> None:
    """Read the current text as an assignment or as a command."""
    words = shlex.split(scan.current)
    scan.current, scan.target = "", ""
    while words and (words[0] in _KEYWORDS or words[0] in _DECLARING or words[0] in _BLOCKS):
        word = words.pop(0)
        scan.depth = max(0, scan.depth + _BLOCKS.get(word, 0))
        if word == "for":
            _bind_loop(scan, words)
            return
    assigned = Variables.assignments(words)
    if len(assigned) == len(words):
        for name, value in assigned:
            scan.variables.assign(name, value, in_branch=scan.depth > 0)
        return
    scan.script.commands.append(words[len(assigned) :])


def _bind_loop(scan: _Scan, words: list[str]) -> None:
    """Bind the variable of a loop that runs once; in any other loop its value is not told."""
    if len(words) == 3 and words[1] == "in":
        scan.variables.assign(words[0], words[2], in_branch=False)


__all__ = ["COMPUTED", "UNSET", "Script", "read_script"]
