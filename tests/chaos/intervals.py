"""The intervals between two side effects of a run: where each of them can be stopped on the wire.

A side effect is what others can see: an object of the record, the queue or the run's folder, a job's creation or
cancellation. In the interval between two of them a process knows more, or less, than what is written. It is stopped
there by holding the reply of the effect that begins the interval, or the request of the one that ends it. Writes of the
ledger, which all runs share, are not held themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

StandIn = Literal["storage", "vertex"]


@dataclass(frozen=True)
class Hold:
    """One call of a run that a stand-in holds.

    :param matching: regular expression of the call; `{run}` and `{job}` stand for the run's.
    :param number: how many such calls of the run go through before.
    :param stored: hold the reply; False: the request, which is carried out when it is let go, whatever became of
        the process that sent it.
    """

    at: StandIn
    method: str
    matching: str
    number: int = 0
    stored: bool = True


@dataclass(frozen=True)
class Interval:
    """One interval.

    :param story: `ends`: the job ends by itself; `killed`: a person marks the waiting task failed.
    :param holds: the ways to stop a run there; None stops nothing: the run waits in the triggerer.
    """

    name: str
    story: Literal["ends", "killed"]
    holds: tuple[Hold | None, ...]


def _record(number: int, *, stored: bool) -> Hold:
    return Hold("storage", "POST", r"/{run}/train\.json$", number, stored)


def _request(method: str, number: int, *, stored: bool) -> Hold:
    return Hold("storage", method, r"queue/requests/{run}-train\.json$", number, stored)


_TRANSLATION = Hold("storage", "POST", r"/{run}/g1/train/translation\.json$")
_SENT_JOB = r"/{run}/g1/train/a1/job\.json$"
_OF_RUN = r"run-key\W+{run}\W"

INTERVALS = (
    Interval("job frozen .. record begun", "ends", (_TRANSLATION, _record(0, stored=False))),
    Interval(
        "record begun .. place in the queue", "ends", (_record(0, stored=True), _request("POST", 0, stored=False))
    ),
    Interval("place in the queue .. refreshed", "ends", (
        _request("POST", 0, stored=True), _request("POST", 1, stored=False),
    )),
    Interval("GPUs reserved .. intent", "ends", (_request("POST", 1, stored=True), _record(1, stored=False))),
    Interval("intent .. job on file", "ends", (
        _record(1, stored=True), Hold("storage", "POST", _SENT_JOB, stored=False),
    )),
    Interval("job on file .. create", "ends", (
        Hold("storage", "POST", _SENT_JOB), Hold("vertex", "customJobs.create", _OF_RUN, stored=False),
    )),
    Interval("create .. job's name in the record", "ends", (
        Hold("vertex", "customJobs.create", _OF_RUN), _record(2, stored=False),
    )),
    Interval("job's name in the record .. lease bound .. submitted", "ends", (
        _record(2, stored=True), _record(3, stored=False),
    )),
    Interval("submitted .. waiting", "ends", (_record(3, stored=True), None)),
    Interval("job ended .. told in the record", "ends", (_record(4, stored=False), None)),
    Interval("end in the record .. place given back", "ends", (
        _record(4, stored=True), _request("DELETE", 0, stored=False),
    )),
    Interval("place given back .. GPUs free", "ends", (_request("DELETE", 0, stored=True),)),
    Interval("marked failed .. end ordered", "killed", (_record(0, stored=False), None)),
    Interval("end ordered .. cancel told", "killed", (_record(0, stored=True), _record(1, stored=False))),
    Interval("cancel told .. cancel", "killed", (
        _record(1, stored=True), Hold("vertex", "customJobs.cancel", "/{job}:cancel", stored=False),
    )),
    Interval("cancel .. end in the record", "killed", (
        Hold("vertex", "customJobs.cancel", "/{job}:cancel"), _record(2, stored=False),
    )),
    Interval("end in the record .. GPUs free (killed)", "killed", (
        _record(2, stored=True), _request("DELETE", 0, stored=False),
    )),
)  # fmt: skip
"""In the order of a run's life. The holds of `killed` are armed when the task is marked, and count from there."""
