"""The plan: the JSON object of which the trainer reads the keys `tokenizer` and `trainer`."""

from __future__ import annotations

from collections.abc import Mapping

from trainer.config import Config, parse
from trainer.errors import UserError
from trainer.files import Files


def read_plan(files: Files, uri: str, kind: type[Config], key: str) -> Config:
    """Read the config of `kind` that stands under `key`; without the key it is all defaults.

    :raises UserError: when there is no plan, or it does not fit.
    """
    plan = files.read_json(uri)
    if plan is None:
        raise UserError(f"--config: {uri}: no such object")
    if not isinstance(plan, Mapping):
        raise UserError(f"--config: {uri}: expected a mapping with the keys tokenizer and trainer, got {plan!r:.80}")
    return parse(kind, plan.get(key, {}), source=uri, key=key)
