"""Errors in the body that Google's REST servers answer with."""

from __future__ import annotations

from typing import Any

STATUS_NAMES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class ApiError(Exception):
    """An answer other than success; `status` is the HTTP status, `name` the canonical code."""

    def __init__(
        self, status: int, message: str, *, name: str = "", details: list[dict[str, Any]] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.name = name or STATUS_NAMES.get(status, "UNKNOWN")
        self.details = details or []

    def body(self) -> dict[str, Any]:
        """Return the JSON body."""
        error: dict[str, Any] = {"code": self.status, "message": self.message, "status": self.name}
        if self.details:
            error["details"] = self.details
        return {"error": error}


def found_errors(problems: list[tuple[str, str]]) -> ApiError:
    """Return the 400 of failed validation; each problem is a snake_case field path and a message."""
    numbered = "".join(f"\t{n}.Field: {field}; Message: {text}" for n, (field, text) in enumerate(problems, start=1))
    return ApiError(400, f"List of found errors:{numbered}\t")


def bad_payload(violations: list[tuple[str, str]]) -> ApiError:
    """Return the 400 of a body that is not the message asked for; each violation is a field path and a sentence."""
    details = [
        {
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"field": field, "description": text} for field, text in violations],
        }
    ]
    return ApiError(400, "\n".join(text for _, text in violations), details=details)
