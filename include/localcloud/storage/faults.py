"""Faults on demand: the next N requests that match are answered with an error, held or drawn out."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

LONGEST_SKEW = 10 * 365 * 86400.0
"""Seconds that the clock may be told to be off."""

_WHICH = frozenset({"count", "method", "path", "skip"})
_GOES_WITH = {
    "status": _WHICH | {"stored"},
    "hold": _WHICH | {"stored"},
    "rewrite_calls": _WHICH,
    "clock_skew": frozenset[str](),
}
"""What a fault does, and the other fields that mean something with it."""


class Fault(BaseModel):
    """One order to misbehave, the body of `POST /faults`."""

    model_config = ConfigDict(extra="forbid")

    status: int = Field(503, ge=400, le=599, description="HTTP status that is answered")
    count: int = Field(1, ge=1, description="requests that it hits before it is used up")
    method: str = Field("", description="only requests with this method; empty: any")
    path: str = Field("", description="regular expression searched in `PATH?QUERY BUCKET/OBJECT`, decoded; empty: any")
    stored: bool = Field(False, description="carry the request out first, then answer the error all the same")
    skip: int = Field(0, ge=0, description="matching requests that pass before it begins")
    hold: float = Field(
        0, ge=0, description="seconds that the request is held, `stored` after else before it is carried out; no error"
    )
    rewrite_calls: int = Field(0, ge=0, description="calls that a rewrite takes: each but the last answers a token")
    clock_skew: float = Field(
        0, ge=-LONGEST_SKEW, le=LONGEST_SKEW,
        description="seconds that the clock is ahead (negative: behind) in all answers, until it is disarmed",
    )  # fmt: skip

    @field_validator("path")
    @classmethod
    def _compiles(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
        return value

    @model_validator(mode="after")
    def _is_one_kind(self) -> Fault:
        idle = {name for name in ("hold", "rewrite_calls", "clock_skew") if not getattr(self, name)}
        useless = self.model_fields_set - idle - {self.does} - _GOES_WITH[self.does]
        if useless:
            raise ValueError(f"with {self.does} there is no {', '.join(sorted(useless))}")
        if self.rewrite_calls == 1:
            raise ValueError("a rewrite takes one call anyhow: rewrite_calls is 2 or more")
        return self

    @property
    def does(self) -> str:
        """The field that says what it does; "status" for an error."""
        return next((name for name in ("hold", "rewrite_calls", "clock_skew") if getattr(self, name)), "status")


@dataclass
class Armed:
    """A fault that waits for requests."""

    id: str
    fault: Fault
    skip: int
    left: int


class Faults:
    """The faults that are armed now, in the order they were told."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._armed: list[Armed] = []

    def arm(self, fault: Fault) -> str:
        """Let `fault` hit from the next matching request on, and return its id."""
        fault_id = str(next(self._ids))
        self._armed.append(Armed(fault_id, fault, fault.skip, fault.count))
        return fault_id

    def disarm(self, fault_id: str | None = None) -> int:
        """Forget one fault, or all, and return how many."""
        kept = [armed for armed in self._armed if fault_id not in {None, armed.id}]
        removed = len(self._armed) - len(kept)
        self._armed = kept
        return removed

    def pending(self) -> list[dict[str, object]]:
        """Describe the armed faults, with what is left of each."""
        return [{"id": armed.id} | armed.fault.model_dump() | {"left": armed.left} for armed in self._armed]

    def hit(self, method: str, text: str, *, begins_rewrite: bool = False) -> Armed | None:
        """Return the fault that hits a request, and count it.

        :param text: `PATH?QUERY BUCKET/OBJECT` of it, decoded.
        """
        for armed in self._armed:
            if not _matches(armed.fault, method, text, begins_rewrite=begins_rewrite):
                continue
            if armed.skip > 0:
                armed.skip -= 1
                continue
            armed.left -= 1
            if armed.left == 0:
                self._armed.remove(armed)
            return armed
        return None

    def skew(self) -> float:
        """Return the seconds that the clock is ahead, as it was told last."""
        told = [armed.fault.clock_skew for armed in self._armed if armed.fault.does == "clock_skew"]
        return told[-1] if told else 0.0


def fault_body(status: int) -> dict[str, object]:
    """Body of an injected error in the shape of Google's JSON errors."""
    reasons = {412: "conditionNotMet", 429: "rateLimitExceeded"}
    message = f"injected fault {status}"
    reason = {"message": message, "domain": "global", "reason": reasons.get(status, "backendError")}
    return {"error": {"code": status, "message": message, "errors": [reason]}}


def _matches(fault: Fault, method: str, text: str, *, begins_rewrite: bool) -> bool:
    if fault.does == "clock_skew" or (fault.does == "rewrite_calls" and not begins_rewrite):
        return False
    return fault.method.upper() in {"", method} and re.search(fault.path, text) is not None
