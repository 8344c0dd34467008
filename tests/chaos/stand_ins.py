"""The stand-ins' holds and journals, by HTTP and from disk: what a judge may see, and nothing of the product's."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import httpx
from tests.chaos.intervals import Hold
from tests.live.cloud import Cloud

PATIENCE = 60.0
"""Seconds that a stand-in which was killed is asked again."""


class StandIns:
    """Both of them."""

    def __init__(self, cloud: Cloud) -> None:
        self._urls = {"storage": cloud.endpoints["storage"], "vertex": cloud.endpoints["vertex"]}
        self._journals = {
            "storage": cloud.home.logs / "storage-journal.jsonl",
            "vertex": cloud.home.state / "vertex" / "journal.jsonl",
        }
        self._client = httpx.Client(timeout=30, trust_env=False)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def arm(self, hold: Hold, names: dict[str, str], passed: int, seconds: float) -> str:
        """Let a call be held, and return the fault's id.

        :param passed: of the calls that go through before, those that did already.
        """
        matching = _matching(hold, names)
        if hold.at == "vertex":
            body: dict[str, Any] = {
                "kind": "hold", "method": hold.method, "matching": matching, "stored": hold.stored, "seconds": seconds,
            }  # fmt: skip
        else:
            body = {
                "hold": seconds, "method": hold.method, "path": matching, "stored": hold.stored,
                "skip": hold.number - passed,
            }  # fmt: skip
        return str(self._ask("POST", hold.at, "/faults", body)["id"])

    def has_forgotten(self, at: str, fault: str) -> bool:
        """Whether the stand-in was started anew since the fault was armed, and the fault neither waits nor holds."""
        try:
            armed = self._client.get(f"{self._urls[at]}/faults").raise_for_status().json()
        except (httpx.HTTPError, ValueError):
            return False  # it is away; later
        faults = armed["faults"] if at == "vertex" else armed
        return not any(one["id"] == fault for one in faults) and not self.holds(at, fault)

    def passed(self, hold: Hold, names: dict[str, str]) -> int:
        """How many calls that the hold is about have been carried out so far, by the journal."""
        if hold.at == "vertex":
            return 0
        matching = re.compile(_matching(hold, names))
        return sum(
            entry["method"] == hold.method and entry["status"] < 400 and bool(matching.search(f"/{entry['object']}"))
            for entry in self.journal("storage")
        )

    def holds(self, at: str, fault: str) -> bool:
        """Whether the fault holds a call now; False while the stand-in is away."""
        try:
            held = self._client.get(f"{self._urls[at]}/holds").json()
        except (httpx.HTTPError, ValueError):
            return False
        return any(one["id"] == fault for one in held)

    def let_go(self, at: str, fault: str) -> None:
        """Let the call that a fault holds go on, and hold no more."""
        for path in (f"/faults/{fault}", f"/holds/{fault}"):
            try:
                self._client.delete(self._urls[at] + path)
            except httpx.HTTPError:
                return  # it was killed, and has forgotten

    def jobs(self) -> list[dict[str, Any]]:
        """All jobs, as Vertex AI would list them."""
        found: list[dict[str, Any]] = []
        token = ""
        path = "/v1/projects/local-llm/locations/us-central1/customJobs"
        while True:
            page = self._ask("GET", "vertex", f"{path}?pageSize=100&pageToken={token}")
            found += page.get("customJobs", [])
            token = page.get("nextPageToken", "")
            if not token:
                return found

    def journal(self, at: str) -> Iterator[dict[str, Any]]:
        """The entries of a journal, over all restarts."""
        for line in self._journals[at].read_text().splitlines():
            if line.strip():
                yield json.loads(line)

    def object(self, name: str) -> Any:
        """The JSON of an object in the work bucket, as it lies there; None when there is none."""
        answer = self._client.get(f"{self._urls['storage']}/storage/v1/b/local-llm-work/o/{name}?alt=media")
        return None if answer.status_code == httpx.codes.NOT_FOUND else answer.raise_for_status().json()

    def objects(self, prefix: str) -> list[str]:
        """Names of the objects of the work bucket that begin so."""
        page = self._ask("GET", "storage", f"/storage/v1/b/local-llm-work/o?prefix={prefix}&maxResults=1000")
        return [item["name"] for item in page.get("items", [])]

    def _ask(self, method: str, at: str, path: str, body: Any = None) -> Any:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return self._client.request(method, self._urls[at] + path, json=body).raise_for_status().json()
            except httpx.HTTPError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.3)


def _matching(hold: Hold, names: dict[str, str]) -> str:
    return hold.matching.format(**{name: re.escape(value) for name, value in names.items()})
