"""A function's code is the prompt, the first line of its docstring the response."""

from __future__ import annotations

import sysconfig
import textwrap
from pathlib import Path

import pytest

from trainops.errors import ConfigError
from trainops.steps.docstrings import BODY_LINES, PROMPT_CHARACTERS, docstring_pairs


def pairs(source: str) -> list[tuple[str, str]]:
    return list(docstring_pairs(textwrap.dedent(source), "x.py"))


def test_the_docstring_is_taken_out_and_asked_for() -> None:
    assert pairs('''
        def double(x: int,
                   y=None) -> int:
            """Return twice the number.

            Nothing else.
            """
            # really

            return 2 * x
    ''') == [
        (
            'def double(x: int,\n           y=None) -> int:\n    # really\n    return 2 * x\n    """',
            "Return twice the number.",
        )
    ]


def test_methods_and_nested_functions_come_in_the_order_of_the_file_without_their_indentation() -> None:
    found = pairs('''
        class A:
            @property
            def first(self):
                """One."""
                async def inner():
                    """Two."""
                return inner
        def last(): return 3
        def third():
            """Three."""
    ''')
    assert [response for _, response in found] == ["One.", "Two.", "Three."]
    assert [prompt.split("\n")[0] for prompt, _ in found] == [
        "def first(self):", "async def inner():", "def third():",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    return 1\n",
        'def f(): "Not below its signature."\n',
        'def f():\n    """   """\n',
        f'def f({"x" * PROMPT_CHARACTERS}):\n    """Long."""\n',
        '"""Of the module."""\n',
    ],
    ids=["no docstring", "on one line", "empty", "a long signature", "no function"],
)
def test_what_makes_no_pair_is_left_out(source: str) -> None:
    assert pairs(source) == []


def test_a_prompt_is_whole_lines_up_to_its_length() -> None:
    lines = "".join(f"    x = {digit * 30}\n" for digit in "123456")
    ((prompt, _),) = pairs(f'def f():\n    """Do."""\n{lines}')
    assert prompt == "def f():\n    x = " + "1" * 30 + "\n    x = " + "2" * 30 + "\n    x = " + "3" * 30 + '\n    """'
    ((prompt, _),) = pairs(f'def f():\n    """Do."""\n{lines.replace("x", "y" * 80)}')
    assert prompt.count("\n") == 2
    assert len(prompt) <= PROMPT_CHARACTERS


def test_a_file_that_is_no_python_is_told() -> None:
    with pytest.raises(ConfigError, match="not Python that this interpreter reads") as caught:
        pairs("def f(:\n")
    assert caught.value.source == "x.py"


def test_a_module_of_the_standard_library_gives_its_functions() -> None:
    source = (Path(sysconfig.get_path("stdlib")) / "textwrap.py").read_text(encoding="utf-8")
    found = list(docstring_pairs(source, "textwrap.py"))
    assert ("Wrap a single paragraph of text, returning a list of wrapped lines.") in [text for _, text in found]
    for prompt, _ in found:
        assert prompt.startswith("def ")
        assert prompt.endswith('\n    """')
        assert prompt.count("\n") <= 5 + BODY_LINES
