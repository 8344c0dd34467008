"""The body of a request: streamed on, after a look at the head of an upload for the object's name."""

from __future__ import annotations

from collections.abc import AsyncIterator

from localcloud.storage.operation import name_in_metadata

HEAD_BYTES = 256 * 1024
"""Longest metadata part of a multipart upload that is looked into."""


async def read_all(stream: AsyncIterator[bytes]) -> bytes:
    """Read a short body whole."""
    return b"".join([chunk async for chunk in stream])


async def once(data: bytes) -> AsyncIterator[bytes]:
    """Stream bytes that are at hand."""
    yield data


async def peek_name(stream: AsyncIterator[bytes]) -> tuple[str, AsyncIterator[bytes]]:
    """Find the object's name in the first part of a multipart upload; return it and the whole body again."""
    head = b""
    async for chunk in stream:
        head += chunk
        metadata = _first_part(head)
        if metadata is not None or len(head) > HEAD_BYTES:
            return name_in_metadata(metadata or b""), _chain(head, stream)
    return name_in_metadata(_first_part(head) or b""), once(head)


def _first_part(head: bytes) -> bytes | None:
    """Return the content of the first part once it is complete, None until then."""
    head = head.replace(b"\r\n", b"\n")
    boundary, _, rest = head.partition(b"\n")
    if not boundary.startswith(b"--") or b"\n\n" not in rest:
        return None
    content = rest.split(b"\n\n", 1)[1]
    end = content.find(b"\n" + boundary)
    return content[:end] if end >= 0 else None


async def _chain(head: bytes, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield head
    async for chunk in stream:
        yield chunk
