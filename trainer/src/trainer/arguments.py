"""Command lines of the trainer, in the spellings of AI Platform jobs as well."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from trainer.config import TrainerConfig, parse
from trainer.errors import nearest

OVERRIDES = {"batch_size": "batch_size", "learning_rate": "learning_rate", "train_steps": "steps"}
"""Argument -> key of the trainer's config that it overrides."""


class Parser(argparse.ArgumentParser):
    """An argument parser that takes dashes and underscores alike and names the nearest argument."""

    def __init__(self, prog: str, description: str) -> None:
        super().__init__(prog=prog, description=description, allow_abbrev=False)
        self._known: list[str] = []

    def option(self, name: str, help_text: str, kind: type = str, *, required: bool = False) -> None:
        """Add `--name`, which may be written with dashes or underscores."""
        dashed = "--" + name.replace("_", "-")
        spellings = list(dict.fromkeys([dashed, "--" + name]))
        self._known += spellings
        metavar = {int: "N", float: "X"}.get(kind, "URI")
        self.add_argument(
            *spellings, dest=name.replace("-", "_"), type=kind, required=required, metavar=metavar, help=help_text
        )

    def parse_strictly(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        """Parse; an unknown argument ends the program with exit code 2."""
        values, unknown = self.parse_known_args(arguments)
        if unknown:
            name = unknown[0].split("=")[0]
            self.error(f"unknown argument {unknown[0]!r}{nearest(name, self._known)}")
        return values

    def error(self, message: str) -> NoReturn:
        """Print the message and where help is, and exit with code 2."""
        self.exit(2, f"error: {message}; see python -m {self.prog} --help\n")


def task_parser() -> Parser:
    """Return the parser of `python -m trainer.task`."""
    parser = Parser(
        "trainer.task",
        "Train a language model on tokens, or go on from the newest checkpoint in JOB_DIR/checkpoints. "
        "Exit codes: 0 done, or preempted after saving a checkpoint; 1 another try may help; 2 it never will. "
        "Every argument may be written with dashes or underscores.",
    )
    parser.option("config", "plan whose key `trainer` holds the settings; default: the trainer's own defaults")
    parser.option("tokens", "folder that python -m trainer.tokenize wrote", required=True)
    parser.option("job_dir", "folder for all that the job leaves", required=True)
    parser.option("model_dir", "folder for the trained model; default JOB_DIR/model")
    parser.option("batch_size", "sequences in one step over all replicas; overrides the config", int)
    parser.option("learning_rate", "highest learning rate; overrides the config", float)
    parser.option("train_steps", "optimizer steps; overrides the config", int)
    return parser


def tokenize_parser() -> Parser:
    """Return the parser of `python -m trainer.tokenize`."""
    parser = Parser(
        "trainer.tokenize",
        "Train a tokenizer on a staged dataset and write its tokens. Does nothing when OUTPUT has a manifest. "
        "Exit codes: 0 done; 1 another try may help; 2 it never will.",
    )
    parser.option("dataset", "folder of the staged dataset", required=True)
    parser.option("output", "folder for tokenizer, tokens and manifest", required=True)
    parser.option("config", "plan whose key `tokenizer` holds the settings", required=True)
    return parser


def overridden(config: TrainerConfig, values: argparse.Namespace) -> TrainerConfig:
    """Return `config` with the values given on the command line, checked as those of the config are."""
    given = {key: getattr(values, name) for name, key in OVERRIDES.items() if getattr(values, name) is not None}
    parse(TrainerConfig, given, source="command line", key="trainer")
    return replace(config, **given)
