"""The gallery's pictures are drawn from metrics alone, and its page shows what the runs left."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
GALLERY = ROOT / "docs" / "gallery"
SVG = "{http://www.w3.org/2000/svg}"
METRICS = (
    '{"step": 0, "eval_loss": 7.5}\n'
    + "".join(f'{{"step": {step}, "loss": {7 - step / 10}, "learning_rate": 0.00{step}}}\n' for step in range(1, 10))
    + '{"step": 9, "eval_loss": 5.5}\n'
)


@pytest.fixture(scope="module")
def curves() -> dict[str, Any]:
    return runpy.run_path(str(GALLERY / "curves.py"))


def drawn(curves: dict[str, Any], text: str = METRICS) -> bytes:
    picture: bytes = curves["draw"](curves["read_metrics"](text), "A run", 6.25)
    return picture


def test_a_curve_shows_losses_evaluations_entropy_and_learning_rate(curves: dict[str, Any]) -> None:
    tree = ElementTree.fromstring(drawn(curves))
    groups = {group.get("id"): group for group in tree.iter(f"{SVG}g")}
    points = {name: len(re.findall(r"[ML]", groups[name][0].get("d", ""))) for name in ("training", "rate")}
    assert points == {"training": 9, "rate": 9}
    assert len(list(groups["eval"].iter(f"{SVG}use"))) == 2
    texts = [text.text for text in tree.iter(f"{SVG}text")]
    assert {"A run", "training", "evaluation", "unigram entropy (6.25)", "loss (nats per token)", "step"} <= set(texts)


def test_the_same_metrics_give_the_same_picture_and_others_another(curves: dict[str, Any]) -> None:
    assert drawn(curves) == drawn(curves)
    assert drawn(curves) != drawn(curves, METRICS.replace("5.5", "5.6"))


def test_the_page_tells_the_figures_of_both_runs_and_what_the_models_write() -> None:
    made = runpy.run_path(str(GALLERY / "gallery_page.py"))
    result = {
        "parameters": 1_050_000, "replicas": 2, "steps": 2000, "tokens": 2_048_000, "eval_loss_before": 7.6474,
        "eval_loss": 3.8004, "unigram_entropy": 6.3261, "sample": "def f():",
    }  # fmt: skip
    runs = [made["Shown"]("tiny", name, result, "tiny.svg", 512) for name in ("Pretraining", "Fine-tuning")]
    text = made["page"](*runs, [made["Written"]("def g():", "", "Return a|b.")], "Measured here.")
    assert "| parameters | 1,050,000 | 1,050,000 |" in text
    assert "| evaluation loss before | 7.647 | 7.647 |" in text
    assert "| evaluation loss after | 3.800 | 3.800 |" in text
    assert "| before | (nothing) |" in text
    assert "| after | `` Return a\\|b. `` |" in text
    assert text.count("![loss of tiny over 2000 steps](tiny.svg)") == 2


def test_the_pictures_of_the_page_are_there_and_the_readme_shows_one() -> None:
    pictures = re.findall(r"!\[.*\]\((.*\.svg)\)", (GALLERY / "README.md").read_text(encoding="utf-8"))
    assert pictures == ["stdlib_tiny.svg", "stdlib_docstrings.svg"]
    for picture in pictures:
        assert ElementTree.parse(GALLERY / picture).getroot().tag == f"{SVG}svg"
    assert "(docs/gallery/stdlib_tiny.svg)" in (ROOT / "README.md").read_text(encoding="utf-8")
