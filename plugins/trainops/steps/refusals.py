"""Versions that the gate refused, as the decisions of their runs tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from trainops import naming
from trainops.errors import IntegrityError
from trainops.gcp.storage import Storage
from trainops.settings import Settings
from trainops.steps.judgement import Judgement
from trainops.steps.stored_json import read_model

READERS = 16
"""Decisions read at a time; each run has one."""


def list_refusals(
    storage: Storage, settings: Settings, model: str, channel: str, *, say: Callable[[str], None] = print
) -> list[Judgement]:
    """Return the decisions that kept a version out of the channel, the newest first; of each run the last one.

    :param say: told of a decision that cannot be read, which is left out.
    """

    def read(uri: str) -> Judgement | None:
        try:
            found = read_model(storage, uri, Judgement)
        except IntegrityError as error:
            say(f"left out: {error}")
            return None
        return found[0] if found else None

    with ThreadPoolExecutor(READERS) as readers:
        decisions = list(readers.map(read, _decisions(storage, settings)))
    refused = [
        item for item in decisions if item and not item.promote and (item.model, item.channel) == (model, channel)
    ]
    return sorted(refused, key=lambda item: item.decided_at, reverse=True)


def _decisions(storage: Storage, settings: Settings) -> Iterator[str]:
    """Where each run's decision is, if it came to one; folders alone are listed, not what runs left in them."""
    for experiment in storage.folders(f"{settings.work}/runs"):
        for run in storage.folders(f"{settings.work}/runs/{experiment}"):
            yield f"{naming.run_folder(settings.work, experiment, run)}/decision.json"
