"""The command `trainops`: data goes to stdout, everything else to stderr.

Exit codes: 0 done, 1 failed, 2 the user's input was refused. Each command is a module of `trainops.commands` with
`add_parser(subparsers)` and `run(args) -> int`; only the one that is asked for is imported.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

from trainops import __version__
from trainops.errors import TrainopsError

COMMANDS = {
    "check": "say what is missing or wrong in environment, GPU pools, datasets and experiments",
    "init": "print, and with --apply create, what a Google Cloud project needs",
    "plan": "show the job that a run of an experiment would send, its GPUs and machines",
    "convert": "show the Vertex AI job that an AI Platform training job becomes",
    "queue": "show who holds GPUs, who waits and why; change priorities, hold, preempt",
    "runs": "show runs and how they went",
    "models": "show models, their versions and channels",
    "lineage": "show what a model was made of, down to the files of its rows, and what it cost",
}
"""Every command, and what it does."""

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended, as shells have it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    :param argv: the arguments; those of the process unless given.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        args = _parser(arguments).parse_args(arguments)
        return int(args.run(args))
    except TrainopsError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough. Python would complain again when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="trainops",
        description="Train language models on Google Cloud from Apache Airflow.",
        epilog="exit codes: 0 done, 1 failed, 2 the input was refused",
    )
    parser.add_argument("--version", action="version", version=f"trainops {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    asked = next((argument for argument in arguments if argument in COMMANDS), None)
    for name, help_text in COMMANDS.items():
        if name == asked:
            _add(subparsers, name)
        else:
            subparsers.add_parser(name, help=help_text)
    return parser


def _add(subparsers: Any, name: str) -> None:
    module = importlib.import_module(f"trainops.commands.{name}")
    module.add_parser(subparsers)
    subparsers.choices[name].set_defaults(run=module.run)
