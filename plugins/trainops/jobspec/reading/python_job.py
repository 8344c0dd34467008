"""The training job in a Python program: a client of the discovery API, an Airflow DAG, or a gcloud command."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from trainops.errors import ConfigError
from trainops.jobspec.notes import Note
from trainops.jobspec.reading.airflow_task import OPERATORS, read_task
from trainops.jobspec.reading.gcloud_line import ReadConfig, read_commands
from trainops.jobspec.reading.held_job import HeldJob
from trainops.jobspec.reading.program import Program
from trainops.jobspec.reading.shell import Script, read_script
from trainops.jobspec.reading.untold import COMPUTED, filled_in, is_untold, settled, written

_LOOKS_LIKE = re.compile(
    r"^[ \t]*(?:import|from)[ \t]+\w|MLEngine\w*Training\w*Operator\(|\.jobs\(\)\s*\.create\(|"
    r"^[ \t]*\w+[ \t]*=[ \t]*(?:\{|dict\()",
    re.MULTILINE,
)
_WRAPPERS = ("trainingInput", "training_input")
_BARE = {"scaleTier", "scale_tier", "packageUris", "package_uris", "pythonModule", "python_module", "masterConfig"}
_SUBMITS = re.compile(r"gcloud\b[^;|&]*\bjobs\s+submit\s+training\b", re.DOTALL)
_TEXTS = (ast.Constant, ast.JoinedStr, ast.BinOp, ast.List)

Found = tuple[ast.expr, Any]


def parsed_program(text: str, source: str) -> Program | None:
    """Return the program; None when the text is none."""
    if not _LOOKS_LIKE.search(text):
        return None
    try:
        return Program(text, source)
    except SyntaxError:
        return None


def check_no_program(text: str, source: str) -> None:
    """Tell where a text that looks like a program is none that can be read, such as one of Python 2.

    :raises ConfigError: it looks like one.
    """
    if not _LOOKS_LIKE.search(text):
        return
    try:
        Program(text, source)
    except SyntaxError as error:
        problem = f"cannot be read as Python, at line {error.lineno}: {error.msg}"
        step = "give the dict that it sends, as JSON or in a file of its own"
        raise ConfigError(problem, source=source, next_step=step) from None


def read_program(program: Program, source: str, read_config: ReadConfig) -> HeldJob:
    """Return the only training job of the program.

    :raises ConfigError: none, several (all are named), or a value that the program does not tell.
    """
    for find, read in _KINDS:
        found = list(find(program))
        if len(found) > 1:
            raise _several(found, source)
        if found:
            return read(program, found[0], source)
    script = _script(program, source)
    if script.commands:
        return read_commands(script, source, read_config)
    step = "give the dict that it sends, as JSON, or with values that stand in the program"
    raise ConfigError("no training job stands in it that can be read without running it", source=source, next_step=step)


def _several(found: list[Found], source: str) -> ConfigError:
    names = ", ".join(f"line {node.lineno} ({_name(value)})" for node, value in found)
    step = "give one of them in a file of its own"
    return ConfigError(f"{len(found)} training jobs stand in it: {names}", source=source, next_step=step)


def _name(value: Any) -> str:
    fields = value if isinstance(value, Mapping) else {}
    name = fields.get("jobId") or fields.get("job_id") or fields.get("task_id")
    return written(str(name)) if name else "one without a name"


def _created(program: Program) -> Iterator[Found]:
    """Bodies that the program sends: `projects().jobs().create(body=...)`."""
    for node in program.nodes():
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Attribute(attr="jobs")), attr="create")):
                body = next((one.value for one in node.keywords if one.arg == "body"), None)
                value = None if body is None else program.value(body)
                if isinstance(value, dict) and any(name in value for name in _WRAPPERS):
                    yield node, value


def _whole(program: Program) -> Iterator[Found]:
    """Dicts that are whole jobs, wherever they are sent."""
    for node in program.nodes():
        if isinstance(node, ast.Dict) and any(
            isinstance(key, ast.Constant) and key.value in _WRAPPERS for key in node.keys
        ):
            yield node, program.value(_as_bound(program, node))


def _bare(program: Program) -> Iterator[Found]:
    """Dicts that are a TrainingInput."""
    for node in program.nodes():
        if isinstance(node, ast.Dict):
            keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
            if len(keys & _BARE) > 1:
                yield node, program.value(_as_bound(program, node))


def _as_bound(program: Program, node: ast.expr) -> ast.AST:
    """Return a use of the name that the dict is bound to, after all that changes it; else the dict."""
    parent = program.parent(node)
    if not isinstance(parent, ast.Assign) or not isinstance(parent.targets[0], ast.Name):
        return node
    name = parent.targets[0].id
    uses = [one for one in program.nodes() if isinstance(one, ast.Name) and one.id == name and one.lineno > node.lineno]
    loads = [one for one in uses if isinstance(one.ctx, ast.Load)]
    return loads[-1] if loads and isinstance(program.value(loads[-1]), dict) else node


def _read_body(program: Program, found: Found, source: str) -> HeldJob:
    node, value = found
    body, notes = settled(value, source)
    parent = next((one.value for one in getattr(node, "keywords", ()) if one.arg == "parent"), None)
    if parent is not None:
        shown = written(str(program.value(parent)))
        notes.append(Note("parent", shown, "changed", "", "not sent: the project is the environment's"))
    return HeldJob(body, f"a dict in a Python program, line {node.lineno}", notes)


def _tasks(program: Program) -> Iterator[Found]:
    for node in program.nodes():
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in OPERATORS:
            yield node, {one.arg: program.value(one.value) for one in node.keywords if one.arg in {"job_id", "task_id"}}


_KINDS: tuple[tuple[Callable[[Program], Iterator[Found]], Callable[[Program, Found, str], HeldJob]], ...] = (
    (_created, _read_body),
    (_tasks, lambda program, found, source: read_task(program, found[0], source)),
    (_whole, _read_body),
    (_bare, _read_body),
)
"""Forms of a job in a program, most certain first."""


def _script(program: Program, source: str) -> Script:
    """Return the commands in the texts and lists of the program."""
    commands: list[list[str]] = []
    for node in program.nodes():
        text = _command_text(program, node)
        if text is None:
            continue
        known = program.names_before(node.lineno)
        try:
            commands += read_script(filled_in(text, known), known).commands
        except ValueError as error:
            problem = f"the command at line {node.lineno} cannot be read: {error}"
            step = "close the quote in it, or give the command alone"
            raise ConfigError(problem, source=source, next_step=step) from error
    return Script(commands, {})


def _command_text(program: Program, node: ast.expr) -> str | None:
    """Return the command that the expression is; None for another one, and for a part of a larger one."""
    if not isinstance(node, _TEXTS) or isinstance(program.parent(node), (*_TEXTS, ast.FormattedValue)):
        return None
    value = program.value(_with_methods(program, node))
    if isinstance(value, list) and value[:1] == ["gcloud"]:
        value = " ".join(one if is_untold(str(one)) else shlex.quote(str(one)) for one in value)
    return value if isinstance(value, str) and _SUBMITS.search(value) else None


def _with_methods(program: Program, node: ast.expr) -> ast.expr:
    """Return the call of `"...".format(...)` and the like, as long as its result is told."""
    attribute = program.parent(node)
    call = None if attribute is None else program.parent(attribute)
    if not isinstance(attribute, ast.Attribute) or not isinstance(call, ast.Call) or call.func is not attribute:
        return node
    return _with_methods(program, call) if not str(program.value(call)).startswith(COMPUTED) else node
