"""The way to fake-gcs-server: forwards requests as streams, and reads the live version of an object."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any
from urllib.parse import quote

import httpx

from localcloud.storage.operation import ObjectName
from localcloud.storage.preconditions import Version

_HOP_BY_HOP = frozenset({"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "date", "server"})
_TIMEOUT = httpx.Timeout(300.0, connect=5.0)
_LIMITS = httpx.Limits(max_connections=200, max_keepalive_connections=50)

Headers = list[tuple[str, str]]


class Upstream:
    """A client of fake-gcs-server at `url`."""

    def __init__(self, url: str) -> None:
        self._client = httpx.AsyncClient(base_url=url, timeout=_TIMEOUT, limits=_LIMITS, trust_env=False)
        self._client.headers.clear()

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def forward(
        self, method: str, target: str, headers: Iterable[tuple[str, str]], body: AsyncIterator[bytes]
    ) -> httpx.Response:
        """Send a request on; the answer's body is still to be read. `target` is the raw path with its query."""
        kept = end_to_end(headers)
        has_body = any(name in {"content-length", "transfer-encoding"} for name, _ in headers)
        request = self._client.build_request(method, target, headers=kept, content=body if has_body else None)
        return await self._client.send(request, stream=True)

    async def version(self, target: ObjectName) -> Version | None:
        """Return the live version of an object, None when there is none; raises httpx.HTTPError."""
        value = await self._resource(target)
        return None if value is None else Version(int(value["generation"]), int(value.get("metageneration", 1)))

    async def size(self, target: ObjectName) -> int | None:
        """Return the bytes of an object, None when there is none; raises httpx.HTTPError."""
        value = await self._resource(target)
        return None if value is None else int(value["size"])

    async def _resource(self, target: ObjectName) -> Any:
        path = f"/storage/v1/b/{quote(target.bucket, safe='')}/o/{quote(target.name, safe='')}"
        answer = await self._client.get(path)
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        return answer.raise_for_status().json()

    async def ensure_bucket(self, name: str) -> None:
        """Create a bucket unless it exists; raises httpx.HTTPError."""
        answer = await self._client.get(f"/storage/v1/b/{name}")
        if answer.status_code == httpx.codes.NOT_FOUND:
            answer = await self._client.post("/storage/v1/b", json={"name": name})
        answer.raise_for_status()

    async def is_alive(self) -> bool:
        """Say whether fake-gcs-server answers."""
        try:
            answer = await self._client.get("/storage/v1/b", timeout=2.0)
        except httpx.HTTPError:
            return False
        return answer.is_success


def end_to_end(headers: Iterable[tuple[str, str]]) -> Headers:
    """Drop the headers that belong to one connection, and those that the proxy sets itself."""
    return [(name, value) for name, value in headers if name.lower() not in _HOP_BY_HOP]
