"""Draws the loss curve of a run from its `metrics.jsonl`, as an SVG picture: the same metrics give the same bytes."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "trainops",
    "font.family": "sans-serif",
    "font.size": 10,
}
"""Text stays text, and the names of parts do not come from chance."""
TRAINING, EVALUATION, UNIGRAM, RATE = "#7a9cc6", "#c0392b", "#7f8c8d", "#27ae60"

Lines = Sequence[dict[str, Any]]


def read_metrics(text: str) -> list[dict[str, Any]]:
    """Return the lines of a `metrics.jsonl`."""
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def draw(metrics: Lines, title: str, unigram_entropy: float) -> bytes:
    """Return the picture: losses above, the learning rate small below.

    :param metrics: the run's lines, those of evaluations among them.
    :param unigram_entropy: of the held-out tokens that the loss counts, in nats per token.
    """
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 4.4), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
        _losses(above, metrics, unigram_entropy)
        above.set_title(title, fontsize=11)
        _learning_rate(below, metrics)
        picture = io.BytesIO()
        figure.savefig(picture, format="svg", metadata={"Date": None, "Creator": None})
    # Spaces at the ends of lines say nothing and make noise in a diff.
    return b"\n".join(line.rstrip() for line in picture.getvalue().splitlines()) + b"\n"


def _losses(axes: Axes, metrics: Lines, unigram_entropy: float) -> None:
    trained, evaluated = ([line for line in metrics if key in line] for key in ("loss", "eval_loss"))
    axes.plot(*_points(trained, "loss"), color=TRAINING, linewidth=0.9, label="training", gid="training")
    axes.plot(*_points(evaluated, "eval_loss"), "o-", color=EVALUATION, markersize=4, label="evaluation", gid="eval")
    label = f"unigram entropy ({unigram_entropy:.2f})"
    axes.axhline(unigram_entropy, color=UNIGRAM, linestyle="--", linewidth=1, label=label, gid="unigram")
    axes.set_ylabel("loss (nats per token)")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)


def _learning_rate(axes: Axes, metrics: Lines) -> None:
    axes.plot(*_points([line for line in metrics if "loss" in line], "learning_rate"), color=RATE, gid="rate")
    axes.set_ylabel("learning\nrate", fontsize=8)
    axes.set_xlabel("step")
    axes.set_ylim(bottom=0)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25)


def _points(lines: Lines, key: str) -> tuple[list[int], list[float]]:
    return [line["step"] for line in lines], [line[key] for line in lines]
