"""Every error that Trainops raises, in one tree.

TrainopsError
├── ConfigError            the user's input is refused: never retried, exit code 2
├── ServiceError           a Google service answered with an error
│   ├── TransientError     408, 409 ABORTED, 429 on reads, 499, 5xx, lost connection, token refresh: ask again
│   ├── AccessError        401, 403, a token that is refused for good: somebody must grant something
│   ├── NotFoundError      404
│   ├── RequestRefused     400, other 4xx, 501: the request itself is wrong, never retried
│   └── WriteConflict      412: the object changed since it was read
├── IntegrityError         an object of ours is corrupt or belongs to somebody else: left alone
└── RunError               a run ended without what it was for
    ├── CapacityError      Google has nothing to run it on: queue again
    │   ├── QuotaExceeded  the project's quota is used up
    │   └── Stockout       the region has no such machines now
    ├── Preempted          made room for another run: resumes, costs no retry
    ├── SpotLost           Google took the machines back: resumes, costs no retry
    ├── InternalFailure    an error inside Vertex AI: resumes, costs no retry
    ├── JobVanished        somebody deleted the job: resumes, costs no retry
    ├── JobFailed          the user's code failed: message, exit code, last log lines
    │   └── OutOfMemory    it took more memory than the machine or the GPU has
    ├── ImagePullFailed    the container image is missing, or may not be read
    ├── PermissionMissing  an account may not do what the job needs
    ├── JobRefused         Vertex AI did not take the job
    ├── JobCancelled       somebody cancelled the job
    ├── CostCapReached     the run's jobs have cost as much as they may; the job was cancelled
    ├── DeadlinePassed     the run's own deadline passed; the job was cancelled
    └── OutputsMissing     the job succeeded but did not leave what it promised

How a run's end is told apart, retried, and mended is a table: `trainops.policy.failure.RULES`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

_WORD = re.compile(r"[a-z0-9]+")


class TrainopsError(Exception):
    """Root of the tree; `exit_code` is what the command line ends with."""

    exit_code = 1


class ConfigError(TrainopsError):
    """A user's input that cannot be used, told so that the next try succeeds.

    :param problem: one clause that says what is wrong.
    :param source: the file, or "conf" for run configuration.
    :param key: dotted path of the key inside the source.
    :param value: what stood there.
    :param allowed: what may stand there; the nearest match to `value` is worked out from it.
    :param next_step: what to do now.
    """

    exit_code = 2

    def __init__(
        self,
        problem: str,
        *,
        source: str = "",
        key: str = "",
        value: object = None,
        allowed: Iterable[object] = (),
        next_step: str = "",
    ) -> None:
        self.problem = problem
        self.source = source
        self.key = key
        self.value = value
        self.allowed = [str(item) for item in allowed]
        self.next_step = next_step
        super().__init__(self._text())

    @property
    def nearest(self) -> str | None:
        """The allowed value most like the one given, if any is."""
        given = str(self.value).lower()
        # The folders before the last part of a path are the same for all that is allowed.
        is_path = given.startswith(("/", "gs://"))
        given = _last_part(given) if is_path else given
        lowered = {_last_part(item.lower()) if is_path else item.lower(): item for item in self.allowed}
        words = set(_WORD.findall(given))
        # NVIDIA_T4 is a short NVIDIA_TESLA_T4 rather than a misspelt NVIDIA_L4.
        fuller = [item for item in lowered if words and words <= set(_WORD.findall(item))]
        found = get_close_matches(given, fuller or list(lowered), n=1, cutoff=0.3 if fuller else 0.5)
        return lowered[found[0]] if found else None

    def _text(self) -> str:
        where = ": ".join(_one_line(part) for part in (self.source, self.key) if part)
        parts = [f"{where}: {self.problem}" if where else self.problem]
        if self.value is not None:
            parts.append(f"got {self.value!r}")
        if self.allowed:
            shown = ", ".join(map(_escaped, self.allowed[:30])) + (", ..." if len(self.allowed) > 30 else "")
            parts.append(f"allowed: {shown}")
        nearest = self.nearest
        if nearest is not None and nearest != self.value:
            parts.append(f"did you mean {nearest!r}?")
        if self.next_step:
            parts.append(_escaped(self.next_step))
        return "; ".join(parts)


def _one_line(text: str) -> str:
    """A name that a user wrote, as it may stand in a log: nothing in it ends a line or moves the cursor."""
    return text if text.isprintable() else repr(text)


def _escaped(text: str) -> str:
    """A sentence that may hold what a user wrote, such as a path made of it."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _last_part(path: str) -> str:
    return path.rsplit("/", 1)[-1]


class ServiceError(TrainopsError):
    """A Google service answered with an error; `status` is the HTTP status, 0 when no reply came."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class TransientError(ServiceError):
    """Asking again may help: 429 on reads, 409 ABORTED, 499, 5xx but 501, a lost connection, a failed token refresh."""


class NotSentError(TransientError):
    """No connection could be made, or no access token was to be had: Google never saw the request."""


class AccessError(ServiceError):
    """401 or 403: the credentials lack something."""


class NotFoundError(ServiceError):
    """404: no such bucket, object or job."""


class RequestRefused(ServiceError):
    """400, 409 ALREADY_EXISTS, 501 and others: sending the same request again cannot help."""


class WriteConflict(ServiceError):
    """412: the object is not at the generation that the write expected."""


class IntegrityError(TrainopsError):
    """An object under our names is corrupt or was written by somebody else; it is left alone."""


class RunError(TrainopsError):
    """A run ended without what it was for."""


class CapacityError(RunError):
    """Google has nothing to run it on: the job key queues again."""


class QuotaExceeded(CapacityError):
    """The project's quota is used up; the next attempt follows after a pause."""


class Stockout(CapacityError):
    """The region has no such machines now; the next attempt follows after a pause."""


class Preempted(RunError):
    """The run made room for another; it resumes from its checkpoint and costs no retry."""


class SpotLost(RunError):
    """Google took Spot machines back; the run resumes and costs no retry."""


class InternalFailure(RunError):
    """An error inside Vertex AI; the next attempt follows after a pause."""


class JobVanished(RunError):
    """Somebody deleted the job; the next attempt follows."""


class JobFailed(RunError):
    """The user's code failed.

    :param exit_code_of_job: exit code of the replica that failed, when Vertex told it.
    """

    def __init__(self, message: str, *, exit_code_of_job: int | None = None) -> None:
        super().__init__(message)
        self.exit_code_of_job = exit_code_of_job


class OutOfMemory(JobFailed):
    """The job took more memory than its machine or GPU has: the same job would end the same way."""


class ImagePullFailed(RunError):
    """The container image is missing, or Vertex AI's service agents may not read it."""


class PermissionMissing(RunError):
    """The caller, or the account that the job runs as, may not do what the job needs."""


class JobRefused(RunError):
    """Vertex AI did not take the job: sending it again cannot help."""


class JobCancelled(RunError):
    """Somebody cancelled the job."""


class DeadlinePassed(RunError):
    """The run's own deadline passed, and its job was cancelled."""


class CostCapReached(RunError):
    """The run's jobs have cost as much as they may, and were ended."""


class OutputsMissing(RunError):
    """The job succeeded but did not leave what it promised."""
