"""What was read: the fields of a job, and what became of words around it that are no fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainops.jobspec.notes import Note


@dataclass(frozen=True)
class HeldJob:
    """A training job as its user holds it.

    :param fields: bare or inside a whole job, as `parse_training_input` takes them.
    :param form: what the text was read as, for people.
    :param notes: what became of words that are no fields of a job.
    :param to_package: local folders and files that gcloud would have packaged and uploaded.
    :param name: name of what holds the job, for one that names none itself; may be empty.
    """

    fields: Mapping[str, Any]
    form: str
    notes: list[Note] = field(default_factory=list)
    to_package: tuple[str, ...] = ()
    name: str = ""
