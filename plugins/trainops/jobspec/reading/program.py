"""Literals of a Python program, with names put in place; nothing of the program is executed."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from typing import Any

from trainops.errors import ConfigError
from trainops.jobspec.reading.program_calls import called
from trainops.jobspec.reading.untold import COMPUTED, UNSET

_UNSAFE = re.compile(r"[\"'\\\s;&|<>#`$]")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)
_BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.Match)
_LONGEST_TEXT = 60
_STATEMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Delete)


class Program:
    """A parsed program.

    :raises SyntaxError: it is not Python.
    """

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about the user's program, such as "\\d" in a text
                self.tree = ast.parse(text)
        except (ValueError, RecursionError, MemoryError) as error:
            raise SyntaxError(str(error)) from error
        self._parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}
        self._open: set[ast.AST] = set()

    def nodes(self) -> list[ast.expr]:
        """Return the expressions of the program in the order of its lines."""
        found = [node for node in ast.walk(self.tree) if isinstance(node, ast.expr)]
        return sorted(found, key=lambda node: (node.lineno, node.col_offset))

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Return the node that this one is a part of."""
        return self._parents.get(node)

    def value(self, node: ast.AST) -> Any:
        """Return the value of an expression: texts, numbers, lists and dicts; what is not told stays behind a mark.

        :raises ConfigError: a dict or list that is changed in a way which depends on the run.
        """
        if node in self._open or len(self._open) > 200:
            return self.mark(node)
        self._open.add(node)
        try:
            return self._value(node)
        finally:
            self._open.discard(node)

    def mark(self, node: ast.AST, kind: str = UNSET) -> str:
        """Return what stands for an expression whose value the text does not tell."""
        return f"{kind}{{{_UNSAFE.sub('', ast.unparse(node))[:_LONGEST_TEXT]}}}"

    def names_before(self, line: int) -> dict[str, str]:
        """Return the plain texts and numbers that module-level names have, and `os.environ`, before a line."""
        found: dict[str, str] = {}
        for statement in self._statements(self.tree, line):
            if not isinstance(statement, ast.Assign):
                continue
            for target in statement.targets:
                name = _bound_name(target)
                value = self.value(statement.value) if name else None
                if name and isinstance(value, (str, int, float)):
                    found[name] = str(value)
        return found

    def _value(self, node: ast.AST) -> Any:
        match node:
            case ast.Constant():
                return self.mark(node) if node.value is ... or isinstance(node.value, (bytes, complex)) else node.value
            case ast.Name():
                return self._named(node)
            case ast.Dict():
                return self._dict(node)
            case ast.List() | ast.Tuple():
                return self._list(node)
            case ast.JoinedStr():
                return "".join(self._text(part) for part in node.values)
            case ast.Subscript():
                return self._item(node)
            case ast.BinOp():
                return self._operation(node)
            case ast.UnaryOp(op=ast.USub()):
                inner = self.value(node.operand)
                return -inner if isinstance(inner, (int, float)) else self.mark(node)
            case ast.Call():
                found, value = called(self, node)
                return value if found else self.mark(node, COMPUTED)
        return self.mark(node)

    def _text(self, part: ast.expr) -> str:
        if not isinstance(part, ast.FormattedValue):
            return str(self.value(part))
        value = self.value(part.value)
        if part.format_spec is None or isinstance(value, str):
            return str(value)
        try:
            return format(value, str(self.value(part.format_spec)))
        except (ValueError, TypeError):
            return self.mark(part.value)

    def _dict(self, node: ast.Dict) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key, inner in zip(node.keys, node.values, strict=True):
            value = self.value(inner)
            if key is None:
                found |= value if isinstance(value, dict) else {str(value): value}
                continue
            name = self.value(key)
            found[name if isinstance(name, (str, int, float, bool)) else str(name)] = value
        return found

    def _list(self, node: ast.List | ast.Tuple) -> list[Any]:
        found: list[Any] = []
        for part in node.elts:
            value = self.value(part.value if isinstance(part, ast.Starred) else part)
            found += value if isinstance(part, ast.Starred) and isinstance(value, list) else [value]
        return found

    def _item(self, node: ast.Subscript) -> Any:
        outer, key = self.value(node.value), self.value(node.slice)
        try:
            return outer[key] if isinstance(outer, (dict, list)) else self.mark(node)
        except (KeyError, IndexError, TypeError):
            return self.mark(node)

    def _operation(self, node: ast.BinOp) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
        try:
            match node.op:
                case ast.Add() if numbers or (type(left) is type(right) and isinstance(left, (str, list))):
                    return left + right
                case ast.Mult() if numbers:
                    return left * right
                case ast.Mod() if isinstance(left, str) and isinstance(right, (str, int, float, list)):
                    return left % (tuple(right) if isinstance(right, list) else right)
        except (TypeError, ValueError, OverflowError):
            return self.mark(node)
        return self.mark(node)

    def _named(self, node: ast.Name) -> Any:
        scope: ast.AST | None = self._scope(node)
        line = node.lineno
        while scope is not None:
            bound, changes = self._bindings(scope, node.id, line)
            if bound:
                return self._changed(node, self._one_of(node, bound, scope), changes, scope)
            if node.id in _parameters(scope):
                return self.mark(node)
            scope = self._scope(scope)
            line = 1 << 30 if isinstance(scope, ast.Module) else line
        return self.mark(node)

    def _one_of(self, node: ast.Name, bound: list[ast.Assign | ast.AnnAssign], scope: ast.AST) -> Any:
        """Return the value of the last binding, unless branches bind the name differently."""
        last = max((index for index, one in enumerate(bound) if not self._in_branch(one, scope)), default=0)
        values = [self.value(one.value) for one in bound[last:] if one.value is not None]
        return values[0] if values and all(value == values[0] for value in values) else self.mark(node)

    def _bindings(
        self, scope: ast.AST, name: str, line: int
    ) -> tuple[list[ast.Assign | ast.AnnAssign], list[ast.stmt]]:
        """Return the statements that bind a name before a line, and those after the last of them that change it."""
        bound: list[ast.Assign | ast.AnnAssign] = []
        changes: list[ast.stmt] = []
        for statement in self._statements(scope, line):
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and name in _plain_targets(statement):
                bound.append(statement)
                changes = []
            elif name in _changed_names(statement):
                changes.append(statement)
        return bound, changes

    def _changed(self, node: ast.Name, value: Any, changes: list[ast.stmt], scope: ast.AST) -> Any:
        """Return a dict or list after the statements that change it."""
        if not isinstance(value, (dict, list)):
            return self.mark(node) if any(isinstance(one, ast.AugAssign) for one in changes) else value
        for statement in changes:
            if self._in_branch(statement, scope) or not self._apply(statement, value):
                raise ConfigError(
                    f"line {statement.lineno} changes {node.id} in a way that depends on the run",
                    source=self.source,
                    value=ast.unparse(statement)[:_LONGEST_TEXT],
                    next_step="write the job that counts, with its fields as they are",
                )
        return value

    def _apply(self, statement: ast.stmt, value: Any) -> bool:
        match statement:
            case ast.Assign(targets=[ast.Subscript() as target]):
                outer = value if isinstance(target.value, ast.Name) else self._inner(target.value, value)
                if not isinstance(outer, dict):
                    return False
                outer[self.value(target.slice)] = self.value(statement.value)
                return True
            case ast.AugAssign(op=ast.Add()):
                added = self.value(statement.value)
                if isinstance(value, list) and isinstance(added, list):
                    value.extend(added)
                    return True
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=inner, attr=name), args=[argument], keywords=[])):
                return _call_on(self._inner(inner, value), name, self.value(argument))
        return False

    def _inner(self, node: ast.expr, value: Any) -> Any:
        """Return the dict inside `value` that `name[key][key]` means."""
        if not isinstance(node, ast.Subscript):
            return value if isinstance(node, ast.Name) else None
        outer, key = self._inner(node.value, value), self.value(node.slice)
        return outer.get(key) if isinstance(outer, dict) and isinstance(key, str) else None

    def _scope(self, node: ast.AST) -> ast.AST | None:
        parent = self._parents.get(node)
        while parent is not None and not isinstance(parent, _SCOPES):
            parent = self._parents.get(parent)
        return parent

    def _statements(self, scope: ast.AST, line: int) -> Iterator[ast.stmt]:
        """Yield the statements of a scope that stand before a line, without those of scopes inside it."""
        for child in ast.iter_child_nodes(scope):
            if isinstance(child, _STATEMENTS) and (child.end_lineno or child.lineno) < line:
                yield child
            elif not isinstance(child, (*_SCOPES, *_STATEMENTS)):
                yield from self._statements(child, line)

    def _in_branch(self, node: ast.AST, scope: ast.AST) -> bool:
        parent = self._parents.get(node)
        while parent is not None and parent is not scope:
            if isinstance(parent, _BRANCHES) and not _is_main(parent):
                return True
            parent = self._parents.get(parent)
        return False


def _parameters(scope: ast.AST) -> set[str]:
    if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        return set()
    return {one.arg for one in ast.walk(scope.args) if isinstance(one, ast.arg)}


def _is_main(node: ast.AST) -> bool:
    """Whether this is `if __name__ == "__main__"`, which no run is without."""
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)


def _call_on(value: Any, name: str, given: Any) -> bool:
    """Change a dict or list as its method does; False for what is not told."""
    if name == "update" and isinstance(value, dict) and isinstance(given, dict):
        value.update(given)
    elif name == "append" and isinstance(value, list):
        value.append(given)
    elif name == "extend" and isinstance(value, list) and isinstance(given, list):
        value.extend(given)
    else:
        return False
    return True


def _plain_targets(statement: ast.Assign | ast.AnnAssign) -> set[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _bound_name(target: ast.expr) -> str | None:
    """Return the name that an assignment sets, or the key of `os.environ[...]`."""
    match target:
        case ast.Name():
            return target.id
        case ast.Subscript(value=ast.Attribute(attr="environ"), slice=ast.Constant(value=str(name))):
            return name
    return None


def _changed_names(statement: ast.stmt) -> set[str]:
    """Return the names whose value the statement changes in place."""
    match statement:
        case ast.Assign():
            targets: list[ast.expr] = [one for one in statement.targets if isinstance(one, ast.Subscript)]
        case ast.AugAssign():
            targets = [statement.target]
        case ast.Delete():
            targets = statement.targets
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=inner, attr=name))) if name in _CHANGING:
            targets = [inner]
        case _:
            return set()
    return {_root(one) for one in targets}


_CHANGING = {"update", "append", "extend", "insert", "pop", "remove", "clear", "setdefault", "popitem"}


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
