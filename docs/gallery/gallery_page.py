"""The text of the gallery's page, from what two runs left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shown:
    """A run that ended, as the page shows it.

    :param result: its `result.json`.
    :param picture: file of its loss curve, beside the page.
    :param documents: documents or pairs that it trained on.
    """

    experiment: str
    title: str
    result: Mapping[str, Any]
    picture: str
    documents: int


@dataclass(frozen=True)
class Written:
    """What two models write after one prompt."""

    prompt: str
    before: str
    after: str


HEAD = """\
# Gallery

<!-- Made by `make gallery`: change docs/gallery/*.py and run it. -->

Two runs through the DAGs of this project on the local cloud: a pretraining from random weights, and a fine-tuning of
the model that the first one promoted. `make gallery` makes them again, pictures and figures included, in some minutes.
The models are as small as a laptop can train while one waits: they show that the machinery learns, not how well a model
can write.
"""

TUNED = """\
The first line that each model writes after the code of a function and the quotes that open a docstring, the most likely
token each time. What the tuning gained is in the loss: a model of this size learns the form of such a line, hardly its
sense.
"""


def page(pretrained: Shown, tuned: Shown, written: Sequence[Written], measured: str) -> str:
    """Return the page.

    :param measured: when and where the runs were, in a sentence.
    """
    parts = [
        HEAD,
        measured,
        "\n".join(_table(pretrained, tuned)),
        _section(pretrained)
        + f"\n\nWhat it wrote at the end, after `def `:\n\n{_code(pretrained.result['sample'], '')}",
        _section(tuned) + f"\n\n{TUNED}",
        *(_pair(item) for item in written),
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _table(*shown: Shown) -> list[str]:
    rows: dict[str, list[str]] = {
        "": [item.title for item in shown],
        "experiment": [f"`{i.experiment}`" for i in shown],
    }
    for name, key, form in (
        ("parameters", "parameters", ",d"),
        ("replicas", "replicas", "d"),
        ("steps", "steps", ",d"),
        ("tokens trained on", "tokens", ",d"),
        ("evaluation loss before", "eval_loss_before", ".3f"),
        ("evaluation loss after", "eval_loss", ".3f"),
        ("unigram entropy of the held-out text", "unigram_entropy", ".3f"),
    ):
        rows[name] = [format(item.result[key], form) for item in shown]
    rows["documents (files, pairs) to train on"] = [f"{item.documents:,d}" for item in shown]
    lines = [f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items()]
    return [lines[0], "|---|" + "---|" * len(shown), *lines[1:]]


def _section(shown: Shown) -> str:
    words = f"loss of {shown.experiment} over {shown.result['steps']} steps"
    return f"## {shown.title}\n\n![{words}]({shown.picture})"


def _pair(item: Written) -> str:
    rows = [f"| {name} | {_cell(text)} |" for name, text in (("before", item.before), ("after", item.after))]
    return "\n".join([_code(item.prompt, "python"), "", "| | |", "|---|---|", *rows])


def _cell(text: str) -> str:
    return f"`` {text} ``".replace("|", "\\|") if text else "(nothing)"


def _code(text: str, language: str) -> str:
    fence = "````"
    return f"{fence}{language}\n{text}\n{fence}"
