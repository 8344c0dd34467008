"""`docs/reference/cases.md` names every report once, and the tests that show what it says."""

from __future__ import annotations

import ast
import re
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
PAGE = (REFERENCE / "cases.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return runpy.run_path(str(REFERENCE / "make_cases.py"))


def test_the_page_is_what_the_list_and_the_marks_give(made: dict[str, Any]) -> None:
    assert made["page"]() == PAGE, "stale: run .venv/bin/python docs/reference/make_cases.py"


def test_every_report_is_listed_once_in_full(made: dict[str, Any]) -> None:
    cases = made["cases"]()
    assert len(cases) == 81
    assert [name for name, count in Counter(case.id for case in cases).items() if count > 1] == []
    for case in cases:
        assert re.fullmatch(r"C\d{3}", case.id)
        assert case.verdict in made["VERDICTS"], case.id
        assert case.source.startswith(("https://github.com/", "PyPI: ")), case.id
        for text in (case.met, case.here):
            assert len(text) > 10, case.id
            assert "|" not in text, case.id


def test_every_report_that_holds_has_a_test_and_every_mark_a_report_that_holds(made: dict[str, Any]) -> None:
    verdicts = {case.id: case.verdict for case in made["cases"]()}
    marked = made["marked_tests"]()
    holding = {name for name, verdict in verdicts.items() if verdict in {"holds", "other means"}}
    assert holding - set(marked) == set(), "these have no test"
    assert set(marked) - set(verdicts) == set(), "these are not in the list"
    assert {name for name in marked if verdicts[name] == "not ours"} == set(), "these have a test and do not concern us"


def test_a_mark_is_read_from_the_source_of_a_test() -> None:
    marks = runpy.run_path(str(REFERENCE / "make_cases.py"))["_marks"]
    tree = ast.parse('@pytest.mark.case("C001")\n@other("C002")\ndef test_x(): ...\ndef helper(): ...')
    assert list(marks(tree)) == [("test_x", "C001")]
