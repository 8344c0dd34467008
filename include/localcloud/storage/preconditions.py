"""The preconditions of Cloud Storage: https://cloud.google.com/storage/docs/request-preconditions.

fake-gcs-server 1.54 keeps `ifGenerationMatch` on single-request uploads only, so the proxy keeps them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs

NAMES = ("ifGenerationMatch", "ifGenerationNotMatch", "ifMetagenerationMatch", "ifMetagenerationNotMatch")


class BadPrecondition(ValueError):
    """A precondition that is not a whole number."""


@dataclass(frozen=True)
class Version:
    """Generation and metageneration of a live object."""

    generation: int
    metageneration: int


@dataclass(frozen=True)
class Preconditions:
    """What a request demands of an object; None where it demands nothing."""

    generation: int | None = None
    generation_not: int | None = None
    metageneration: int | None = None
    metageneration_not: int | None = None

    @classmethod
    def of_query(cls, query: str, *, source: bool = False) -> Preconditions:
        """Read them from a query string; `source` reads those on the source of a copy. Raises BadPrecondition."""
        parameters = parse_qs(query)
        names = [name.replace("if", "ifSource", 1) if source else name for name in NAMES]
        return cls(*(_number(parameters, name) for name in names))

    def __bool__(self) -> bool:
        return any(value is not None for value in vars(self).values())

    def refusal(self, live: Version | None, *, reading: bool) -> int | None:
        """Status that refuses the request against the `live` version (None: no such object), or None to let it pass."""
        if live is None:
            return self._refusal_of_nothing(reading=reading)
        if self.generation not in {None, live.generation} or self.metageneration not in {None, live.metageneration}:
            return 412
        if self.generation_not == live.generation or self.metageneration_not == live.metageneration:
            return 304 if reading else 412
        return None

    def _refusal_of_nothing(self, *, reading: bool) -> int | None:
        if reading:
            return None  # the server's own 404 says more
        demands_life = (self.generation or 0) != 0 or self.metageneration is not None
        return 412 if demands_life or self.generation_not == 0 else None


def refusal_body(status: int) -> dict[str, object]:
    """Body of a 412 in the wording of Cloud Storage."""
    message = "At least one of the pre-conditions you specified did not hold."
    reason = {
        "message": message,
        "domain": "global",
        "reason": "conditionNotMet",
        "locationType": "header",
        "location": "If-Match",
    }
    return {"error": {"code": status, "message": message, "errors": [reason]}}


def _number(parameters: Mapping[str, list[str]], name: str) -> int | None:
    values = parameters.get(name)
    if not values:
        return None
    try:
        return int(values[0])
    except ValueError as error:
        raise BadPrecondition(f"Invalid value for {name}: {values[0]!r}") from error
