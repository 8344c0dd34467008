"""Pairs out of Python files: the code of a function, and the first line of its docstring, which says what it does."""

from __future__ import annotations

import ast
import textwrap
import threading
import warnings
from collections.abc import Iterator

from trainops.errors import ConfigError

BODY_LINES = 3
"""Lines of a function's body in a prompt, at most."""
PROMPT_CHARACTERS = 160
"""A prompt takes whole lines up to this length; functions whose signature alone is longer give no pair."""

_ONE_PARSES = threading.Lock()
"""What warnings do is a setting of the whole process, and files are read in threads."""

_QUOTES = '    """'


def docstring_pairs(source: str, where: str) -> Iterator[tuple[str, str]]:
    """Yield a prompt and a response for each function with a docstring, in the order of the file.

    The prompt is the function without its docstring, cut after a few lines, and the quotes that open a docstring.

    :param where: the file, for errors.
    :raises ConfigError: it is no Python that this interpreter reads.
    """
    lines = source.splitlines()
    for function in sorted(_functions(_parsed(source, where)), key=lambda node: node.lineno):
        first_line = (ast.get_docstring(function) or "").split("\n")[0].strip()
        prompt = _prompt(lines, function)
        if first_line and prompt:
            yield prompt, first_line


def _parsed(source: str, where: str) -> ast.Module:
    with _ONE_PARSES, warnings.catch_warnings():
        # Of old escapes and the like, which are no concern of who only reads the file.
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError) as error:
            problem = f"not Python that this interpreter reads: {error}"
            raise ConfigError(problem, source=where, next_step="correct it, or exclude it") from error


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _prompt(lines: list[str], function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return the prompt, or nothing where the signature is too long or shares its line with the docstring."""
    docstring, end = function.body[0], function.end_lineno or 0
    signature = lines[function.lineno - 1 : docstring.lineno - 1]
    below = lines[docstring.end_lineno or end : end][:BODY_LINES]
    shown = textwrap.dedent("\n".join(signature + [line for line in below if line.strip()])).split("\n")
    while len("\n".join([*shown, _QUOTES])) > PROMPT_CHARACTERS and len(shown) > len(signature):
        shown.pop()
    prompt = "\n".join([*shown, _QUOTES])
    return prompt if signature and len(prompt) <= PROMPT_CHARACTERS else ""
