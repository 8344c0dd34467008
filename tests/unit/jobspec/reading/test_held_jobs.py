"""Jobs that people keep in public, in many forms: each is read as its author meant it, or refused with the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainops.errors import ConfigError
from trainops.jobspec.reading.held_job import HeldJob
from trainops.jobspec.reading.text import read_job

HELD = yaml.safe_load(Path(__file__).with_name("held_jobs.yaml").read_text(encoding="utf-8"))


def read(held: dict[str, Any]) -> HeldJob:
    text = held.get("text")
    if text is None:
        cells = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in held["cells"]]
        text = json.dumps({"cells": cells, "nbformat": 4})
    return read_job(text, held["file"], str)


@pytest.mark.parametrize("held", [one for one in HELD if "fields" in one], ids=lambda one: one["name"])
def test_a_job_is_read_as_its_author_meant_it(held: dict[str, Any]) -> None:
    found = read(held)
    assert found.fields == held["fields"]
    assert [note.field for note in found.notes if note.field != "(other commands)"] == held["notes"]
    assert list(found.to_package) == held.get("to_package", [])


@pytest.mark.parametrize("held", [one for one in HELD if "refused" in one], ids=lambda one: one["name"])
def test_a_job_that_its_file_does_not_tell_is_refused_with_what_is_missing(held: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as refusal:
        read(held)
    assert held["refused"] in str(refusal.value)
    assert refusal.value.next_step


def test_every_job_names_the_commit_that_it_is_from() -> None:
    assert all(len(one["source"].split("/blob/")[1].split("/")[0]) == 40 for one in HELD)
