"""What every key of the config means, read from the docstrings in `config.py`, so that help cannot fall behind."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
import typing
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

WIDTH = 100


def field_docs(kind: type[Any]) -> dict[str, str]:
    """Return the docstring that stands below each field of a dataclass."""
    # Docstrings of fields are not kept at run time: they stand in the source alone.
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    body = typing.cast(ast.ClassDef, tree.body[0]).body
    return {
        item.target.id: " ".join(str(below.value.value).split())
        for item, below in pairwise(body)
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
    }


def describe(kind: type[Any], key: str) -> str:
    """Return a paragraph for each field of `kind`, whose place in the plan is `key`, and of the configs inside it."""
    return "\n".join(_paragraphs(kind, key))


def _paragraphs(kind: type[Any], key: str) -> Iterator[str]:
    docs, hints = field_docs(kind), typing.get_type_hints(kind)
    for item in dataclasses.fields(kind):
        if dataclasses.is_dataclass(hints[item.name]):
            yield from _paragraphs(typing.cast(type[Any], hints[item.name]), f"{key}.{item.name}")
            continue
        yield f"  {key}.{item.name} ({'; '.join(_limits(item, hints[item.name]))})"
        yield textwrap.fill(docs[item.name], WIDTH, initial_indent="      ", subsequent_indent="      ")


def _limits(item: dataclasses.Field[Any], hint: Any) -> Iterator[str]:
    kinds = [
        getattr(kind, "__name__", str(kind)) for kind in typing.get_args(hint) or (hint,) if kind is not type(None)
    ]
    yield "mapping" if typing.get_origin(hint) is dict else kinds[0]
    words = {"least": "at least", "most": "at most", "above": "more than"}
    yield from (f"{word} {item.metadata[name]}" for name, word in words.items() if item.metadata.get(name) is not None)
    if choices := item.metadata.get("choices"):
        yield "one of " + ", ".join(choices)
    default = {} if item.default is dataclasses.MISSING else item.default
    yield f"default {'none' if default is None else repr(default)}"
