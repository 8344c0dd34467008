from __future__ import annotations

import json
from typing import Any

import pytest

from trainops.errors import ConfigError
from trainops.jobspec.reading.text import read_job

SUBMIT = "gcloud ai-platform jobs submit training"


def fields(*cells: str) -> Any:
    found: list[dict[str, Any]] = [{"cell_type": "markdown", "source": [f"{SUBMIT} not_this"]}]
    found += [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    return read_job(json.dumps({"cells": found, "nbformat": 4}), "n.ipynb", str).fields


@pytest.mark.parametrize(
    "cells",
    [
        ("REGION = 'r'\nN = 2", f"!{SUBMIT} j --region {{REGION}} --worker-count $N"),
        ("REGION = 'r'", f"N = 2\n!{SUBMIT} j \\\n  --region $REGION \\\n  --worker-count {{N}}"),
        ("%env REGION=r", f"%%bash\nN=2\n{SUBMIT} j --region=$REGION --worker-count=$N"),
        ("import os\nos.environ['REGION'] = 'r'", f"%%bash\n{SUBMIT} j --region $REGION --worker-count 2"),
        ("R = 'r'", f'%%bash -s "$R" 2\n{SUBMIT} j --region $1 --worker-count $2'),
        ("%%writefile c.yaml\nregion: r\nworkerCount: '2'", f"!{SUBMIT} j --config c.yaml"),
        ("%%writefile c.yaml\nregion: r", "%%writefile -a c.yaml\nworkerCount: '2'", f"!{SUBMIT} j --config ./c.yaml"),
        ("files = !ls", "if True:\n    !echo $x", f"!{SUBMIT} j --region r --worker-count 2"),
    ],
)
def test_the_cells_before_tell_what_a_command_needs(cells: tuple[str, ...]) -> None:
    assert fields(*cells) == {"jobId": "j", "trainingInput": {"region": "r", "workerCount": "2"}}


def test_a_name_has_the_value_that_it_has_at_the_cell() -> None:
    assert fields("R = 'first'", f"!{SUBMIT} j --region $R", "R = 'later'")["trainingInput"] == {"region": "first"}


def test_a_job_of_the_discovery_client_is_found_among_cells() -> None:
    assert fields("inputs = {'region': 'r'}", "ml.projects().jobs().create(body={'trainingInput': inputs})") == {
        "trainingInput": {"region": "r"}
    }


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ((f"!{SUBMIT} a", f"%%bash\n{SUBMIT} b"), "2 commands submit a training job: a, b"),
        ((f"!{SUBMIT} a --region {{R}}",), r"not told: \{R\}"),
        ((f"%%bash\n{SUBMIT} 'a",), "a shell cell cannot be read"),
        (("print(1)",), "no training job stands in it"),
    ],
)
def test_what_the_cells_do_not_tell_is_refused(cells: tuple[str, ...], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        fields(*cells)
