"""Rewrites of an object that take several calls: each answers a token, with which the next one goes on.

https://cloud.google.com/storage/docs/json_api/v1/objects/rewrite. The server behind does every rewrite in one call.
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass, replace
from urllib.parse import parse_qs

from localcloud.storage.operation import ObjectName, Operation


class BadToken(ValueError):
    """A rewriteToken that was not answered to this rewrite."""


@dataclass(frozen=True)
class Rewrite:
    """How far a rewrite is. The token is all of it, so that a call may be repeated, also after a restart."""

    source: str
    target: str
    size: int
    """Bytes of the source."""
    calls: int
    """Calls that the rewrite takes."""
    done: int = 0
    """Calls that were answered."""

    @classmethod
    def begun(cls, operation: Operation, size: int, calls: int) -> Rewrite:
        """A rewrite of which nothing is done."""
        return cls(_name(operation.source), _name(operation.target), size, calls)

    @classmethod
    def of_query(cls, operation: Operation, query: str) -> Rewrite | None:
        """The rewrite that a call goes on with; None when it begins one. Raises BadToken."""
        tokens = parse_qs(query).get("rewriteToken")
        if not tokens:
            return None
        try:
            rewrite = cls(**json.loads(base64.urlsafe_b64decode(tokens[0])))
        except (ValueError, TypeError) as error:
            raise BadToken("Invalid value for rewriteToken") from error
        if (rewrite.source, rewrite.target) != (_name(operation.source), _name(operation.target)):
            raise BadToken("The rewriteToken is of another source or destination")
        return rewrite

    def call(self) -> Rewrite:
        """The rewrite after one more call."""
        return replace(self, done=self.done + 1)

    @property
    def is_last(self) -> bool:
        """True when the next call is the one that stores the object."""
        return self.done + 1 >= self.calls

    def body(self) -> dict[str, object]:
        """Answer to a call that is not the last."""
        return {
            "kind": "storage#rewriteResponse",
            "totalBytesRewritten": str(self.size * self.done // self.calls),
            "objectSize": str(self.size),
            "done": False,
            "rewriteToken": base64.urlsafe_b64encode(json.dumps(asdict(self)).encode()).decode(),
        }


def _name(target: ObjectName | None) -> str:
    return f"{target.bucket}/{target.name}" if target is not None else ""
