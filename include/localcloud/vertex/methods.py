"""The API's methods by the names that the journal and the faults use."""

from __future__ import annotations

import re

_PARENT = r"/v1/projects/[^/]+/locations/[^/]+"
_ROUTES = (
    ("customJobs.create", "POST", rf"{_PARENT}/customJobs"),
    ("customJobs.list", "GET", rf"{_PARENT}/customJobs"),
    ("customJobs.get", "GET", rf"{_PARENT}/customJobs/(\d+)"),
    ("customJobs.cancel", "POST", rf"{_PARENT}/customJobs/(\d+):cancel"),
    ("customJobs.delete", "DELETE", rf"{_PARENT}/customJobs/(\d+)"),
    ("operations.get", "GET", rf"{_PARENT}/(?:customJobs/\d+/)?operations/\d+"),
    ("entries.list", "POST", r"/v2/entries:list"),
    ("token", "POST", r"/token"),
    ("generateAccessToken", "POST", r"/v1/projects/-/serviceAccounts/[^/]+:generateAccessToken"),
)
METHODS = tuple(name for name, _, _ in _ROUTES)
"""Names of all methods."""


def method_of(verb: str, path: str) -> tuple[str, str | None]:
    """Return the method that a request calls, "unknown" when it is none, and the id of the job that it names."""
    for name, wanted, pattern in _ROUTES:
        found = re.fullmatch(pattern, path)
        if found and verb == wanted:
            return name, found.group(1) if found.re.groups else None
    return "unknown", None
