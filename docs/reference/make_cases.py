"""Write `cases.md`, what users of neighbouring systems met and what holds here, from `cases.yaml` and the tests.

A test says by `@pytest.mark.case("C003")` which report it shows to hold; the marks are read from the tests' source, and
nothing is imported. From the project's folder: `.venv/bin/python docs/reference/make_cases.py`. A test fails when the
page is stale, a report that holds has no test, or a test names a report that is not in the list.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import yaml

HERE = Path(__file__).parent
PAGE = HERE / "cases.md"
LIST = HERE / "cases.yaml"
ROOT = HERE.parents[1]

VERDICTS = {
    "holds": "holds",
    "other means": "holds by other means",
    "not yet": "not yet",
    "not ours": "does not concern us",
}
"""Verdict in the list -> as the page says it. The first two need a test."""

HEAD = """\
# What users met elsewhere

<!-- Made by docs/reference/make_cases.py from cases.yaml and the marks of tests: change these, and run the script. -->

Reports of users of neighbouring systems, each with its source, and what holds here. *Holds*: a test meets the report's
situation. *Holds by other means*: the same guarantee, got differently than the report proposes. *Not yet*: what is
missing is said. A test is named by its file below `tests/` and its function; those in `live/` run on a real Airflow.
"""


@dataclass(frozen=True)
class Case:
    """One report: what users met, and what holds here."""

    id: str
    topic: str
    met: str
    here: str
    verdict: str
    source: str


def cases() -> list[Case]:
    """Return the reports, in the order of the list."""
    return [Case(**item) for item in yaml.safe_load(LIST.read_text(encoding="utf-8"))]


def marked_tests() -> dict[str, list[str]]:
    """Return the tests of each report, `file::function` below `tests/`, sorted."""
    found: dict[str, list[str]] = {}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        for function, case in _marks(ast.parse(file.read_text(encoding="utf-8"))):
            found.setdefault(case, []).append(f"{file.relative_to(ROOT / 'tests')}::{function}")
    return found


def page() -> str:
    """Return the text of the page."""
    tests = marked_tests()
    listed = cases()
    counts = [f"{sum(case.verdict == key for case in listed)} {text}" for key, text in VERDICTS.items()]
    summary = f"{len(listed)} reports: {', '.join(counts)}.\n"
    sections = [_section(topic, list(group), tests) for topic, group in groupby(listed, key=lambda case: case.topic)]
    return "\n".join([HEAD, summary, *sections])


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}", file=sys.stderr)
    return 0


def _marks(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield each test function with each report that it is marked with."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or not node.name.startswith("test_"):
            continue
        for call in node.decorator_list:
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.case":
                yield node.name, ast.literal_eval(call.args[0])


def _section(topic: str, group: list[Case], tests: dict[str, list[str]]) -> str:
    head = "| id | users met | here | verdict | tests |"
    return "\n".join([f"## {topic}", "", head, "|---|---|---|---|---|", *(_row(case, tests) for case in group), ""])


def _row(case: Case, tests: dict[str, list[str]]) -> str:
    source = f"[{case.id}]({case.source})" if case.source.startswith("https://") else f"{case.id} ({case.source})"
    named = "<br>".join(f"`{test}`" for test in tests.get(case.id, []))
    return f"| {source} | {case.met} | {case.here} | {VERDICTS[case.verdict]} | {named} |"


if __name__ == "__main__":
    raise SystemExit(main())
