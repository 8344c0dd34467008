"""Which Python a job gets that names none, and what a job is told whose runtime had another."""

from __future__ import annotations

from typing import Any

import pytest

from trainops.jobspec.tables.runtimes import ai_platform_pythons


@pytest.mark.parametrize(
    ("runtime", "pythons"),
    [
        ("1.0", ["2.7"]),
        ("1.3", ["2.7"]),
        ("1.4", ["2.7", "3.5"]),
        ("1.14", ["2.7", "3.5"]),
        ("1.15", ["2.7", "3.7"]),
        ("2.1", ["3.7"]),
        ("2.11", ["3.7"]),
        ("2.12", []),
    ],
)
def test_a_runtime_had_the_pythons_of_the_reference(runtime: str, pythons: list[str]) -> None:
    assert ai_platform_pythons(runtime) == pythons


@pytest.mark.parametrize(
    ("runtime", "verdict", "text"),
    [
        ("1.2", "changed", "Python 3.7: runtime version 1.2 had 2.7 only"),
        ("1.14", "changed", "Python 3.7: runtime version 1.14 had 2.7 and 3.5 only"),
        ("1.15", "defaulted", "Python 3.7; runtime version 1.15 had 2.7 too"),
        ("2.3", "defaulted", "Python 3.7"),
        ("2.17", "defaulted", "Python 3.10"),
    ],
)
def test_a_job_that_names_no_python_is_told_which_it_gets(
    translated: Any, runtime: str, verdict: str, text: str
) -> None:
    (note,) = [note for note in translated({"runtimeVersion": runtime}).notes if note.field == "pythonVersion"]
    assert (note.verdict, note.text) == (verdict, text)


def test_a_tpu_image_of_a_newer_runtime_brings_a_newer_python(translated: Any) -> None:
    notes = translated({"scaleTier": "BASIC_TPU", "runtimeVersion": "2.5"}).notes
    assert [note.text for note in notes if note.field == "pythonVersion"] == [
        "Python 3.7",
        "Python 3.8: runtime version 2.5 had 3.7 only",
    ]
