"""Provisioning: compare what a Google Cloud project needs with what it has, and create what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from trainops.errors import ServiceError
from trainops.gcp.project import Project
from trainops.steps.project_needs import Need

State = Literal["present", "missing", "unknown"]


@dataclass(frozen=True)
class Finding:
    """One need and how it stands.

    :param kind: API, bucket, service account or role.
    :param name: which one.
    :param state: present; missing (or not whole: `problem` says what lacks); unknown (it could not be asked).
    :param problem: what lacks, or why it could not be asked or created; empty when it is present.
    :param command: the gcloud command that creates it.
    """

    kind: str
    name: str
    state: State
    problem: str
    command: str


def compare(project: Project | None, needs: Iterable[Need]) -> Iterator[Finding]:
    """Yield how each need stands; changes nothing.

    :param project: None when nothing can be asked; everything is then unknown.
    """
    for need in needs:
        yield _compared(project, need)


def provide(project: Project, needs: Iterable[Need]) -> Iterator[Finding]:
    """Meet each need that is not met, in order, and yield how it then stands; safe to run again."""
    for need in needs:
        found = _compared(project, need)
        yield found if found.state != "missing" else _met(project, need)


def _compared(project: Project | None, need: Need) -> Finding:
    if project is None:
        return _finding(need, "unknown", "no credentials")
    try:
        lacking = need.lacks(project)
    except ServiceError as error:
        return _finding(need, "unknown", str(error))
    return _finding(need, "missing" if lacking else "present", lacking)


def _met(project: Project, need: Need) -> Finding:
    try:
        need.meet(project)
    except ServiceError as error:
        return _finding(need, "missing", str(error))
    return _compared(project, need)


def _finding(need: Need, state: State, problem: str) -> Finding:
    return Finding(need.kind, need.name, state, problem, need.command)
