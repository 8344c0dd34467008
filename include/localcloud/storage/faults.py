"""Faults on demand: the next N requests that match are answered with an error, with or without being carried out."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, field_validator


class Fault(BaseModel):
    """One order to misbehave, the body of `POST /faults`."""

    model_config = ConfigDict(extra="forbid")

    status: int = Field(503, ge=400, le=599, description="HTTP status that is answered")
    count: int = Field(1, ge=1, description="requests that it hits before it is used up")
    method: str = Field("", description="only requests with this method; empty: any")
    path: str = Field("", description="regular expression searched in `PATH?QUERY BUCKET/OBJECT`, decoded; empty: any")
    stored: bool = Field(False, description="carry the request out first, then answer the error all the same")
    skip: int = Field(0, ge=0, description="matching requests that pass before it begins")

    @field_validator("path")
    @classmethod
    def _compiles(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
        return value


@dataclass
class _Armed:
    fault: Fault
    skip: int
    left: int


class Faults:
    """The faults that are armed now, in the order they were told."""

    def __init__(self) -> None:
        self._armed: list[_Armed] = []

    def arm(self, fault: Fault) -> None:
        """Let `fault` hit from the next matching request on."""
        self._armed.append(_Armed(fault, fault.skip, fault.count))

    def disarm(self) -> None:
        """Forget all faults."""
        self._armed.clear()

    def pending(self) -> list[dict[str, object]]:
        """Describe the armed faults, with what is left of each."""
        return [armed.fault.model_dump() | {"left": armed.left} for armed in self._armed]

    def hit(self, method: str, path: str) -> Fault | None:
        """Return the fault that hits this request, and count it."""
        for armed in self._armed:
            if not _matches(armed.fault, method, path):
                continue
            if armed.skip > 0:
                armed.skip -= 1
                continue
            armed.left -= 1
            if armed.left == 0:
                self._armed.remove(armed)
            return armed.fault
        return None


def fault_body(status: int) -> dict[str, object]:
    """Body of an injected error in the shape of Google's JSON errors."""
    reasons = {412: "conditionNotMet", 429: "rateLimitExceeded"}
    message = f"injected fault {status}"
    reason = {"message": message, "domain": "global", "reason": reasons.get(status, "backendError")}
    return {"error": {"code": status, "message": message, "errors": [reason]}}


def _matches(fault: Fault, method: str, path: str) -> bool:
    return fault.method.upper() in {"", method} and re.search(fault.path, path) is not None
