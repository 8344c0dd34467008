"""A Jupyter notebook: cells of shell, lines that begin with `!`, files that cells write, and the Python around them."""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainops.errors import ConfigError
from trainops.jobspec.reading.gcloud_line import ReadConfig, read_commands
from trainops.jobspec.reading.gcloud_script import submits
from trainops.jobspec.reading.held_job import HeldJob
from trainops.jobspec.reading.program import Program
from trainops.jobspec.reading.python_job import read_program
from trainops.jobspec.reading.shell import Script, read_script
from trainops.jobspec.reading.untold import filled_in
from trainops.jobspec.reading.variables import Variables

_SHELL_CELLS = {"bash", "sh", "script", "shell"}
_ENVIRONMENT = re.compile(r"%(?:set_)?env\s+(\w+)[= ](.*)")
_SHOWN = 60
_ASSIGNED = re.compile(r"(\s*\w+\s*=\s*)!")


@dataclass(frozen=True)
class _Shell:
    """Text for the shell.

    :param line: lines of Python that stand before it.
    :param given: what `%%bash -s` passes to it, as `$1`, `$2` and so on.
    :param is_line: it is a line that begins with `!`, where `{NAME}` is a name of Python.
    """

    text: str
    line: int
    given: list[str] = field(default_factory=list)
    is_line: bool = False

    def script(self, program: Program) -> Script:
        """Return the commands, with the names of Python in place."""
        known = program.names_before(self.line + 1)
        positional = {str(place): Variables(known).expanded(word) for place, word in enumerate(self.given, 1)}
        text = self.text
        if self.is_line:
            text = filled_in(text, known)
        return read_script(text, known | positional)


@dataclass
class _Notebook:
    """A notebook on its way to a script and a program; `lines` is the Python of all cells."""

    lines: list[str] = field(default_factory=list)
    shell: list[_Shell] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)


def code_cells(text: str) -> list[str] | None:
    """Return the texts of the code cells; None when the text is no notebook."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, Mapping) or not isinstance(data.get("cells"), list):
        return None
    cells = [cell for cell in data["cells"] if isinstance(cell, Mapping) and cell.get("cell_type") == "code"]
    return [_source(cell.get("source")) for cell in cells]


def read_notebook(cells: list[str], source: str, read_config: ReadConfig) -> HeldJob:
    """Return the only training job of the notebook.

    :raises ConfigError: none, several, or a value that the cells do not tell.
    """
    notebook = _Notebook()
    for cell in cells:
        _add(notebook, cell)
    program = Program("\n".join(notebook.lines), source)
    script = Script([], dict(notebook.files))
    for shell in notebook.shell:
        try:
            part = shell.script(program)
        except ValueError as error:
            problem = f"a shell cell cannot be read: {error}"
            step = "close the quote in it, or give the command alone"
            raise ConfigError(problem, source=source, value=shell.text[:_SHOWN], next_step=step) from error
        script.commands.extend(part.commands)
        script.files.update(part.files)
    if any(submits(words) for words in script.commands):
        return read_commands(script, source, read_config)
    return read_program(program, source, read_config)


def _source(source: Any) -> str:
    if isinstance(source, list):
        return "".join(str(line) for line in source)
    return source if isinstance(source, str) else ""


def _add(notebook: _Notebook, cell: str) -> None:
    head, _, rest = cell.lstrip().partition("\n")
    magic, _, given = head.lstrip("%").partition(" ")
    if head.startswith("%") and magic in _SHELL_CELLS:  # Datalab wrote it with one %
        words = shlex.split(given.partition("-s ")[2])
        notebook.shell.append(_Shell(rest, len(notebook.lines), words))
    elif head.startswith("%") and magic in {"writefile", "file"} and given:
        name = shlex.split(given)[-1]
        before = notebook.files.get(name, "") if "-a" in given.split() else ""
        notebook.files[posixpath.normpath(name)] = f"{before}{rest}\n"
    elif not head.startswith("%%"):
        _add_python(notebook, cell)


def _add_python(notebook: _Notebook, cell: str) -> None:
    kept: list[str] = []
    for line in _whole_lines(cell):
        text = line.lstrip()
        indent = line[: len(line) - len(text)]
        environment = _ENVIRONMENT.match(text)
        if text.startswith("!"):
            notebook.shell.append(_Shell(text[1:], len(notebook.lines) + len(kept), is_line=True))
            kept.append(f"{indent}pass")
        elif environment:
            kept.append(f"{indent}os.environ[{environment[1]!r}] = {environment[2].strip()!r}")
        elif text.startswith("%"):
            kept.append(f"{indent}pass")
        elif _ASSIGNED.match(line):
            kept.append(_ASSIGNED.sub(r"\1shell() # ", line).replace("\n", " "))
        else:
            kept.append(line)
    try:
        Program("\n".join(kept), "")
    except SyntaxError:
        kept = ["pass"]  # a cell in another language, or a draft: nothing in it can be told
    notebook.lines += [line for text in kept for line in text.split("\n")]


def _whole_lines(cell: str) -> Iterator[str]:
    """Yield lines; one of shell that is continued comes whole."""
    whole = ""
    for line in cell.split("\n"):
        whole = f"{whole}\n{line}" if whole else line
        if whole.lstrip().startswith("!") and line.rstrip().endswith("\\"):
            continue
        yield whole
        whole = ""
    if whole:
        yield whole
