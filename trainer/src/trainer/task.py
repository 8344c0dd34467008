"""`python -m trainer.task`: train a language model, or go on training it."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence

from trainer.arguments import task_parser
from trainer.cluster import find_cluster
from trainer.failures import guarded
from trainer.files import Files
from trainer.job import read_job


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    values = task_parser().parse_strictly(arguments)
    return guarded(lambda: _train(values))


def _train(values: Namespace) -> int:
    files = Files()
    job = read_job(files, values)
    cluster = find_cluster(os.environ)
    # Imported after the input is known to be good: torch takes seconds.
    from trainer.training import train

    return train(files, job, cluster)


if __name__ == "__main__":
    raise SystemExit(main())
