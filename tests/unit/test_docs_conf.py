"""`docs/reference/conf.md` says what the model of the conf says."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from trainops.config.conf import CONF, RunConf
from trainops.validation import parse_json, validated

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
PAGE = (REFERENCE / "conf.md").read_text(encoding="utf-8")


def test_the_page_of_the_conf_is_what_the_model_gives() -> None:
    made = runpy.run_path(str(REFERENCE / "make_conf.py"))["page"]()
    assert made == PAGE, "stale: run .venv/bin/python docs/reference/make_conf.py"


def test_every_key_has_one_row() -> None:
    assert re.findall(r"^\| `(\w+)` ", PAGE, flags=re.MULTILINE) == list(RunConf.model_fields)


def test_the_examples_on_the_page_are_accepted() -> None:
    confs = re.findall(r"--conf '(.*)'", PAGE)
    given = [validated(RunConf, parse_json(conf, source=CONF), source=CONF).given() for conf in confs]
    assert [sorted(keys) for keys in given] == [["note", "steps"], ["steps"]]
