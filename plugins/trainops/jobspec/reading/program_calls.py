"""Calls in a Python program whose result can be told without executing it."""

from __future__ import annotations

import ast
from typing import Any, Protocol

from trainops.jobspec.reading.untold import COMPUTED, UNSET

_TEXT_METHODS = {"format", "replace", "lower", "upper", "strip", "rstrip", "lstrip", "join", "split"}
_UNTOLD = (False, None)


class Evaluator(Protocol):
    """Tells the value of an expression."""

    def value(self, node: ast.AST) -> Any:
        """Return the value of an expression, with marks."""

    def mark(self, node: ast.AST, kind: str = UNSET) -> str:
        """Return what stands for an expression whose value is not told."""


def called(program: Evaluator, node: ast.Call) -> tuple[bool, Any]:
    """Return whether the result of the call is told, and the result."""
    given = [program.value(one) for one in node.args if not isinstance(one, ast.Starred)]
    named = {one.arg: program.value(one.value) for one in node.keywords if one.arg}
    if len(given) + len(named) != len(node.args) + len(node.keywords):
        return _UNTOLD
    name = ast.unparse(node.func)
    if name in {"os.environ.get", "os.getenv", "environ.get", "getenv"}:
        default = given[1] if len(given) > 1 else named.get("default")
        return True, program.mark(node) if default is None else default
    if name.endswith(("Variable.get", ".parse_args")):
        return True, program.mark(node)
    if name in {"os.path.join", "path.join", "posixpath.join"} and all(isinstance(one, str) for one in given):
        return True, _joined(given)
    if name in {"str", "int", "float"} and len(given) == 1 and isinstance(given[0], (str, int, float)):
        return _plain(name, given[0])
    if name == "dict" and not given:
        return True, named
    if isinstance(node.func, ast.Attribute) and node.func.attr in _TEXT_METHODS:
        return _method(program, node.func, given, named)
    return _UNTOLD


def _plain(name: str, value: Any) -> tuple[bool, Any]:
    if name == "str":
        return True, str(value)
    try:
        return True, int(value) if name == "int" else float(value)
    except (ValueError, OverflowError):
        return _UNTOLD


def _joined(parts: list[str]) -> str:
    """Join as os.path.join does, though a bucket never begins anew: `gs://` and a name are one."""
    found = ""
    for part in parts:
        if part.startswith("/") or not found:
            found = part
        else:
            found += part if found.endswith("/") else f"/{part}"
    return found


def _method(program: Evaluator, func: ast.Attribute, given: list[Any], named: dict[str, Any]) -> tuple[bool, Any]:
    text = program.value(func.value)
    if not isinstance(text, str) or ((UNSET in text or COMPUTED in text) and func.attr != "format"):
        return _UNTOLD
    try:
        return True, getattr(text, func.attr)(*given, **named)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        return _UNTOLD
