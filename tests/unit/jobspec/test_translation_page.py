"""`docs/reference/translation.md` says what the tables say."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from trainops.jobspec.tables.fields import FIELDS
from trainops.jobspec.tables.machines import MACHINE_TYPES
from trainops.jobspec.tables.scale_tiers import LEGACY_MACHINES, SCALE_TIERS
from trainops.jobspec.vertex_extras import VertexExtras

REFERENCE = Path(__file__).resolve().parents[3] / "docs" / "reference"
PAGE = (REFERENCE / "translation.md").read_text(encoding="utf-8")


def _first_cells(section: str) -> list[str]:
    text = PAGE.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `([^`]+)` ", text, flags=re.MULTILINE)


def test_the_page_of_the_translation_is_what_the_tables_give() -> None:
    made = runpy.run_path(str(REFERENCE / "make_translation.py"))["page"]()
    assert made == PAGE, "stale: run .venv/bin/python docs/reference/make_translation.py"


def test_every_field_stands_on_the_page() -> None:
    for message, rows in FIELDS.items():
        assert _first_cells(message) == list(rows)
    assert _first_cells("What only Vertex AI has") == [field.alias for field in VertexExtras.model_fields.values()]


def test_every_machine_stands_on_the_page() -> None:
    assert [*_first_cells("Machines and accelerators"), *_first_cells("TPU machines")] == list(MACHINE_TYPES)
    assert set(LEGACY_MACHINES) <= set(_first_cells("Legacy machines"))
    assert set(SCALE_TIERS) == set(_first_cells("Scale tiers"))


def test_every_row_of_a_table_has_the_cells_of_its_head() -> None:
    for table in re.findall(r"(?:^\|.*\n)+", PAGE, flags=re.MULTILINE):
        widths = {line.count("|") for line in table.splitlines()}
        assert len(widths) == 1, table
