"""Write `conf.md`, the page of every key of a run's conf, from the model that checks the conf.

From the project's folder: `.venv/bin/python docs/reference/make_conf.py`. A test fails when the page is stale.
"""

from __future__ import annotations

import json
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

from trainops.config.conf import RunConf

PAGE = Path(__file__).with_name("conf.md")

HEAD = """\
# The conf of a run

<!-- Made by docs/reference/make_conf.py from RunConf: change that, and run the script. -->

`airflow dags trigger --conf JSON`, `airflow backfill create --dag-run-conf JSON`, the trigger form and
`trainops plan --conf JSON` take the same keys. All are optional: what is absent, or null, stays as the experiment's
file has it. An unknown key, or a value that is not allowed, fails the run's first task, and `trainops plan` with exit
code 2, before anything is submitted.

    airflow dags trigger train_stdlib_tiny --conf '{"steps": 50, "note": "a quick look"}'
    trainops plan stdlib_tiny --conf '{"steps": 50}'
"""

_LIMITS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} character",
    "maxLength": "at most {} characters",
    "pattern": "matches `{}`",
}


def page() -> str:
    """Return the text of the page."""
    keys = RunConf.model_json_schema()["properties"].items()
    sections = [_section(name, list(rows)) for name, rows in groupby(keys, key=lambda item: str(item[1]["section"]))]
    return "\n".join([HEAD, *sections])


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}", file=sys.stderr)
    return 0


def _section(name: str, keys: list[tuple[str, dict[str, Any]]]) -> str:
    rows = ["| key | value | what it does | for example |", "|---|---|---|---|", *(_row(*item) for item in keys)]
    return "\n".join([f"## {name}", "", *rows, ""])


def _row(name: str, schema: dict[str, Any]) -> str:
    kinds = " or ".join(_value(option) for option in schema["anyOf"] if option["type"] != "null")
    examples = ", ".join(f"`{json.dumps(example)}`" for example in schema["examples"])
    return f"| `{name}` | {kinds} | {schema['description']} | {examples} |"


def _value(kind: dict[str, Any]) -> str:
    """Say in words what may stand there."""
    if "enum" in kind:
        return " or ".join(f"`{json.dumps(choice)}`" for choice in kind["enum"])
    words = {"string": "text", "integer": "whole number", "number": "number"}
    name = "date" if kind.get("format") == "date" else words[kind["type"]]
    limits = [
        text.format(kind[key]) for key, text in _LIMITS.items() if key in kind and (key, kind[key]) != ("minLength", 1)
    ]
    return ", ".join([name, *limits])


if __name__ == "__main__":
    raise SystemExit(main())
