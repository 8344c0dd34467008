"""Texts in which commands of the shell stand, made into a shell text: Markdown, Makefiles, batch files of Windows."""

from __future__ import annotations

import re

_SUBMITS = re.compile(r"\bjobs\s+submit\s+training\b")
_FENCE = re.compile(r"^[ \t]*```[ \t]*(\w*)[^\n]*\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)
_SHELL_NAMES = {"", "bash", "sh", "shell", "console", "zsh", "text"}
_RECIPE = re.compile(r"^\t[@+-]*(?:\w+=\S*[ \t]+)*gcloud\s", re.MULTILINE)
_TARGET = re.compile(r"^[\w./%$(){} -]+:(?![=:])", re.MULTILINE)
_MAKE_ASSIGNMENT = re.compile(r"^(?:export[ \t]+)?(\w+)[ \t]*(?:::|:|\?)?=[ \t]*(.*)$")
_MAKE_SHELL = re.compile(r"\$\(shell[ \t]+")
_MAKE_VARIABLE = re.compile(r"\$\((\w+)\)")
_BATCH_SET = re.compile(r"^[ \t]*set[ \t]+\"?(\w+)=(.*?)\"?[ \t]*$", re.IGNORECASE | re.MULTILINE)
_BATCH_VARIABLE = re.compile(r"%(\w+)%")
_CONTINUED = re.compile(r"\\\n[ \t]*")


def as_shell(text: str) -> str:
    """Return the shell text inside; a text that is none of these comes back as it is."""
    blocks = [body for name, body in _FENCE.findall(text) if name.lower() in _SHELL_NAMES]
    if any(_SUBMITS.search(body) for body in blocks):
        return "\n".join(body for body in blocks if _SUBMITS.search(body) or "<<" in body or _only_assigns(body))
    if _RECIPE.search(text) and _TARGET.search(text):
        return _from_make(text)
    if _BATCH_SET.search(text) and _BATCH_VARIABLE.search(text):
        return _from_batch(text)
    return text


def _only_assigns(body: str) -> bool:
    lines = [line.strip() for line in body.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return bool(lines) and all(re.match(r"(?:\$ )?(?:export )?\w+=", line) for line in lines)


def _from_make(text: str) -> str:
    """Return the assignments, twice since make reads them all before it needs one, and the recipes that submit."""
    assignments: list[str] = []
    recipes: list[str] = []
    for line in _CONTINUED.sub(" ", text).split("\n"):
        if line.startswith("\t"):
            recipe = line.strip().lstrip("@+-")
            recipes += [_plain(recipe)] if _SUBMITS.search(recipe) else []
        elif found := _MAKE_ASSIGNMENT.match(line):
            value = _plain(found[2].partition(" #")[0].strip()).strip("\"'")
            assignments.append(f'{found[1]}="{value}"')
    return "\n".join([*assignments, *assignments, *recipes])


def _plain(text: str) -> str:
    return _MAKE_SHELL.sub("$(", _MAKE_VARIABLE.sub(r"${\1}", text)).replace("$$", "$")


def _from_batch(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\\", "\\\\")
    text = re.sub(r"\^[ \t]*\n", " \\\n", text)
    text = re.sub(r"^[ \t]*(?:rem\b|::)[^\n]*", "", text, flags=re.IGNORECASE | re.MULTILINE)
    text = _BATCH_SET.sub(lambda found: f'{found[1]}="{found[2].strip(chr(34))}"', text)
    return _BATCH_VARIABLE.sub(r"${\1}", text)
