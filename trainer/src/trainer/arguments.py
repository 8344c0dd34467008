"""Command lines of the trainer, in the spellings of AI Platform jobs as well."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from trainer.config import TokenizerConfig, TrainerConfig, parse
from trainer.descriptions import describe
from trainer.errors import nearest

OVERRIDES = {"batch_size": "batch_size", "learning_rate": "learning_rate", "train_steps": "steps"}
"""Argument -> key of the trainer's config that it overrides."""

_EXIT_CODES = "Exit codes: 0 done{}; 1 another try may help; 2 it never will."
_SPELLINGS = textwrap.fill(
    "Every argument may be written with dashes or underscores, as --name=value or --name value; places are gs:// URIs "
    "or local paths. What counts: the command line (of an argument given twice, the last), then --config, then the "
    "defaults.",
    100,
)

_ENVIRONMENT = """\
environment:
  CLUSTER_SPEC, TF_CONFIG, or torchrun's RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, LOCAL_RANK, LOCAL_WORLD_SIZE
      the replicas of the job, and which of them this is; none of them: it is alone
  TRAINOPS_CONTROL_URI
      folder in which an object `preempt` asks for a checkpoint and an end, as SIGTERM does
  AIP_TENSORBOARD_LOG_DIR
      folder for TensorBoard's event files, where the package tensorboard is installed
  OMP_NUM_THREADS
      threads of this replica; default: the cores that it may use, shared among the replicas of its machine
  GOOGLE_CLOUD_PROJECT, CLOUD_ML_PROJECT_ID, STORAGE_EMULATOR_HOST
      project and address of the storage behind gs://; default: what the machine's credentials say, and Google's"""


class Parser(argparse.ArgumentParser):
    """An argument parser that takes dashes and underscores alike and names the nearest argument."""

    def __init__(self, prog: str, description: str, settings: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=settings,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self._known: list[str] = []
        self._required: list[str] = []

    def option(self, name: str, help_text: str, kind: type = str, *, required: bool = False) -> None:
        """Add `--name`, which may be written with dashes or underscores."""
        dashed = "--" + name.replace("_", "-")
        spellings = list(dict.fromkeys([dashed, "--" + name]))
        self._known += spellings
        self._required += [dashed] if required else []
        metavar = {int: "N", float: "X"}.get(kind, "URI")
        text = help_text + (" (required)" if required else "")
        self.add_argument(*spellings, dest=name.replace("-", "_"), type=kind, metavar=metavar, help=text)

    def parse_strictly(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        """Parse; an unknown argument ends the program with exit code 2."""
        values, unknown = self.parse_known_args(arguments)
        if unknown:
            name = unknown[0].split("=")[0]
            self.error(f"unknown argument {unknown[0]!r}{nearest(name, self._known)}")
        # Only now: a misspelt argument is better told of as such than as one that is missing.
        missing = [name for name in self._required if not getattr(values, name.lstrip("-").replace("-", "_"))]
        if missing:
            self.error(f"{', '.join(missing)} must be given")
        return values

    def error(self, message: str) -> NoReturn:
        """Print the message and where help is, and exit with code 2."""
        self.exit(2, f"error: {message}; see python -m {self.prog} --help\n")


def task_parser() -> Parser:
    """Return the parser of `python -m trainer.task`."""
    parser = Parser(
        "trainer.task",
        "Train a language model on tokens, or go on from the newest checkpoint in JOB_DIR/checkpoints.\n"
        f"{_EXIT_CODES.format(', or preempted after saving a checkpoint')}\n\n{_SPELLINGS}",
        "keys of the config, with their defaults and what is allowed:\n"
        f"{describe(TrainerConfig, 'trainer')}\n\n{_ENVIRONMENT}",
    )
    parser.option("config", "plan whose key `trainer` holds the settings; default: the trainer's own defaults")
    parser.option("tokens", "folder that python -m trainer.tokenize wrote", required=True)
    parser.option("job_dir", "folder for all that the job leaves", required=True)
    parser.option("model_dir", "folder for the trained model; default JOB_DIR/model")
    parser.option("batch_size", "sequences in one step over all replicas; overrides trainer.batch_size", int)
    parser.option("learning_rate", "highest learning rate; overrides trainer.learning_rate", float)
    parser.option("train_steps", "optimizer steps; overrides trainer.steps", int)
    return parser


def tokenize_parser() -> Parser:
    """Return the parser of `python -m trainer.tokenize`."""
    parser = Parser(
        "trainer.tokenize",
        "Train a tokenizer on a staged dataset, or take one, and write its tokens. Does nothing when OUTPUT has a "
        f"manifest.\n{_EXIT_CODES.format('')}\n\n{_SPELLINGS}",
        "keys of the config, with their defaults and what is allowed:\n" + describe(TokenizerConfig, "tokenizer"),
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
