"""Faults on demand: what the stand-in was told to do wrong, for tests and demonstrations."""

from __future__ import annotations

import itertools
import re
import threading
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from localcloud.vertex.errors import ApiError
from localcloud.vertex.methods import METHODS
from localcloud.vertex.schema import enum_names


def _one_of(*allowed: str) -> AfterValidator:
    """Refuse a name that no call and no job has: such a fault would stand and never strike."""

    def check(value: str) -> str:
        if value not in allowed:
            raise ValueError(f"{value!r} is unknown; allowed: {', '.join(allowed)}")
        return value

    return AfterValidator(check)


LONGEST_SKEW = 10 * 365 * 86400.0
"""Seconds that a clock may be told to be off."""

Method = Annotated[str, _one_of("*", *METHODS)]
Accelerator = Annotated[str, _one_of("*", *enum_names("AcceleratorType")[1:])]


class _Fault(BaseModel):
    model_config = ConfigDict(extra="forbid")
    count: int | None = Field(default=1, ge=1)
    """How often it strikes; None until it is deleted."""


class Answer(_Fault):
    """Answers calls of a method with an error, without doing what they ask."""

    kind: Literal["answer"]
    method: Method = "*"
    status: int = Field(ge=400, le=599)
    message: str = "The service is currently unavailable."
    retry_after: int | None = None
    """Value of the Retry-After header in seconds."""


class DropReply(_Fault):
    """Does what a call asks and then closes the connection, or answers with `status` instead of the true answer."""

    kind: Literal["drop_reply"]
    method: Method = "*"
    status: int | None = Field(default=None, ge=400, le=599)


class Delay(_Fault):
    """Lets calls of a method wait before they are done."""

    kind: Literal["delay"]
    method: Method = "*"
    seconds: float = Field(gt=0)


def _pattern(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    return value


class Hold(_Fault):
    """Holds calls of a method until they are released, so that a test acts between two side effects."""

    kind: Literal["hold"]
    method: Method = "*"
    matching: Annotated[str, AfterValidator(_pattern)] = ""
    """Regular expression searched in `PATH?QUERY BODY`, the query decoded; empty: every call of the method."""
    stored: bool = True
    """Do what the call asks and withhold the reply; False: wait first, then do it, even when the client is gone."""
    seconds: float = Field(default=30, gt=0)
    """Released after so long, if not by hand."""


class ClockSkew(_Fault):
    """Lets all times of jobs and log lines that are told, also those of the past, be off while it stands."""

    kind: Literal["clock_skew"]
    seconds: float = Field(allow_inf_nan=False, ge=-LONGEST_SKEW, le=LONGEST_SKEW)
    """How far the clock is ahead; negative: behind."""
    count: None = None


class TokenFailure(_Fault):
    """Lets the next request for an access token fail."""

    kind: Literal["token_failure"]
    answer: Literal["invalid_grant", "not_json"] = "invalid_grant"
    """Refused for good, as for a key that was deleted; or 200 with a page that is no JSON, as a proxy answers."""


class Stockout(_Fault):
    """Lets provisioning find no machines in a region."""

    kind: Literal["stockout"]
    region: str = "*"
    accelerator: Accelerator = "*"
    """Only jobs that use it; "*" any job."""
    retry_seconds: float = 0.2
    """Time between two tries of one job."""
    count: int | None = Field(default=None, ge=1)


class JobError(_Fault):
    """Lets the next job fail before its code starts, as Vertex fails it."""

    kind: Literal["image_pull", "permission", "internal"]
    """The image cannot be pulled; the job's account may not read an object; an error inside Vertex, after its tries."""


class FailedJob(_Fault):
    """Lets the next job fail before its code starts, with these words."""

    kind: Literal["job_error"]
    code: int = Field(ge=1, le=16)
    """google.rpc.Code."""
    message: str


class SlowCancel(_Fault):
    """Lets a cancelled job run on for a while before it is signalled."""

    kind: Literal["slow_cancel"]
    seconds: float = Field(gt=0)


class SpotLoss(BaseModel):
    """Takes all machines of a running job away, now."""

    model_config = ConfigDict(extra="forbid")
    kind: Literal["spot_loss"]
    job: str
    """Job id or name."""
    final: bool = False
    """Fail the job as after the last restart, instead of restarting it."""


class KillReplica(BaseModel):
    """Sends a signal to one replica, now: 9 looks like running out of memory, 11 like a crash."""

    model_config = ConfigDict(extra="forbid")
    kind: Literal["kill_replica"]
    job: str
    replica: str = "workerpool0-0"
    signal: int = Field(default=9, ge=1, le=31)


Standing = Answer | DropReply | Delay | Hold | ClockSkew | Stockout | JobError | FailedJob | SlowCancel | TokenFailure
Fault = Annotated[Standing | SpotLoss | KillReplica, Field(discriminator="kind")]
_ADAPTER: TypeAdapter[Standing | SpotLoss | KillReplica] = TypeAdapter(Fault)


def parse_fault(body: Any) -> Standing | SpotLoss | KillReplica:
    """Return the fault that a body describes; ApiError 400 when it describes none."""
    try:
        return _ADAPTER.validate_python(body)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise ApiError(400, f"Not a fault: {problems}") from None


class Faults:
    """The faults that stand, in memory alone: a restart of the server forgets them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ids = itertools.count(1)
        self._standing: dict[str, Standing] = {}

    def add(self, fault: Standing) -> str:
        """Let a fault stand, and return its id."""
        with self._lock:
            fault_id = str(next(self._ids))
            self._standing[fault_id] = fault
        return fault_id

    def standing(self) -> list[dict[str, Any]]:
        """Return the faults that stand, with ids and what is left of their counts."""
        with self._lock:
            return [{"id": fault_id, **fault.model_dump()} for fault_id, fault in self._standing.items()]

    def remove(self, fault_id: str | None = None) -> int:
        """Remove one fault, or all, and return how many were removed."""
        with self._lock:
            chosen = [key for key in self._standing if fault_id in {None, key}]
            for key in chosen:
                del self._standing[key]
            return len(chosen)

    def take_answer(self, method: str) -> Answer | None:
        """Use up one answer fault for a call, if one stands."""
        found = self._take(lambda fault: isinstance(fault, Answer) and fault.method in {"*", method})
        return found if isinstance(found, Answer) else None

    def take_drop(self, method: str) -> DropReply | None:
        """Use up one dropped reply for a call, if one stands."""
        found = self._take(lambda fault: isinstance(fault, DropReply) and fault.method in {"*", method})
        return found if isinstance(found, DropReply) else None

    def take_delay(self, method: str) -> float:
        """Return the seconds that a call has to wait."""
        found = self._take(lambda fault: isinstance(fault, Delay) and fault.method in {"*", method})
        return found.seconds if isinstance(found, Delay) else 0.0

    def take_hold(self, method: str, call: str) -> tuple[str, Hold] | None:
        """Use up one hold for a call, if one stands, and return its id with it.

        :param call: `PATH?QUERY BODY`.
        """
        with self._lock:
            for fault_id, fault in self._standing.items():
                if isinstance(fault, Hold) and fault.method in {"*", method} and re.search(fault.matching, call):
                    self._use_up(fault_id, fault)
                    return fault_id, fault
        return None

    def skew(self) -> float:
        """Return the seconds that the clock is ahead, as it was told last."""
        with self._lock:
            told = [fault.seconds for fault in self._standing.values() if isinstance(fault, ClockSkew)]
        return told[-1] if told else 0.0

    def take_stockout(self, region: str, accelerators: set[str]) -> Stockout | None:
        """Use up one stockout for a try to provision, if one stands."""
        wanted = {"*", *accelerators}
        found = self._take(
            lambda fault: isinstance(fault, Stockout) and fault.region in {"*", region} and fault.accelerator in wanted
        )
        return found if isinstance(found, Stockout) else None

    def take_token_failure(self) -> str | None:
        """Return how a request for an access token fails, if it does."""
        found = self._take(lambda fault: isinstance(fault, TokenFailure))
        return found.answer if isinstance(found, TokenFailure) else None

    def take_job_error(self) -> JobError | FailedJob | None:
        """Use up one failure of a job that is about to start, if one stands."""
        found = self._take(lambda fault: isinstance(fault, JobError | FailedJob))
        return found if isinstance(found, JobError | FailedJob) else None

    def take_slow_cancel(self) -> float:
        """Return the seconds that a cancel is late."""
        found = self._take(lambda fault: isinstance(fault, SlowCancel))
        return found.seconds if isinstance(found, SlowCancel) else 0.0

    def _take(self, matches: Any) -> Standing | None:
        with self._lock:
            for fault_id, fault in self._standing.items():
                if matches(fault):
                    self._use_up(fault_id, fault)
                    return fault
        return None

    def _use_up(self, fault_id: str, fault: Standing) -> None:
        if fault.count is None:
            return
        fault.count -= 1
        if fault.count == 0:
            del self._standing[fault_id]
