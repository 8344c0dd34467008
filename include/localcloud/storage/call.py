"""One request to the proxy, understood: what it does, to which object, and whether it may be passed on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from urllib.parse import parse_qs, unquote

from starlette.requests import Request

from localcloud.storage.body import once, peek_name, read_all
from localcloud.storage.names import is_compose, names_of_sources, refusal_of
from localcloud.storage.operation import Kind, Operation, name_in_metadata, parse_operation

_API = ("/storage/v1/", "/upload/storage/v1/", "/resumable/upload/storage/v1/", "/upload/resumable/")


@dataclass
class Call:
    """A request with its body, which is read once and maybe not yet."""

    request: Request
    operation: Operation
    body: AsyncIterator[bytes]
    names: list[str]
    """Of objects that the body names beside the target."""

    @property
    def raw_path(self) -> str:
        """The path, percent-encoded."""
        return str(self.request.scope["raw_path"].decode("ascii"))

    @property
    def query(self) -> str:
        """The query string, as it was sent."""
        return self.request.url.query

    @property
    def target(self) -> str:
        """Path and query, as they were sent."""
        return f"{self.raw_path}?{self.query}" if self.query else self.raw_path

    @property
    def object(self) -> str:
        """`BUCKET/OBJECT` that it is about; "" when there is none."""
        target = self.operation.target
        return f"{target.bucket}/{target.name}" if target is not None else ""

    @property
    def text(self) -> str:
        """`PATH?QUERY BUCKET/OBJECT`, decoded: what faults are matched with."""
        return f"{unquote(self.target)} {self.object}"

    @property
    def is_rewrite(self) -> bool:
        """True of a copy that may take several calls."""
        return self.operation.kind is Kind.COPY and "/rewriteTo/b/" in self.raw_path

    @property
    def begins_rewrite(self) -> bool:
        """True of the first call of a rewrite."""
        return self.is_rewrite and "rewriteToken" not in parse_qs(self.query)

    @property
    def asks_for_resource(self) -> bool:
        """True when a JSON resource is the answer, False when an object's content is."""
        return self.raw_path.startswith(_API) and parse_qs(self.query).get("alt") != ["media"]

    @property
    def refusal(self) -> str | None:
        """Why it is not passed on; None when it is."""
        named = [one.name for one in (self.operation.target, self.operation.source) if one is not None]
        return refusal_of(self.request.method, self.raw_path, self.query, named + self.names)

    async def keep_body(self) -> None:
        """Read the body whole, so that it can still be passed on when the client is gone."""
        self.body = once(await read_all(self.body))


async def understand(request: Request) -> Call:
    """Parse the request; the name of an upload is looked for in its body when it is not in the query."""
    call = Call(request, Operation(Kind.OTHER), request.stream(), [])
    call.operation = operation = parse_operation(request.method, call.raw_path, call.query)
    if is_compose(call.raw_path):
        sources = await read_all(call.body)
        call.body, call.names = once(sources), names_of_sources(sources)
        return call
    if operation.target is None or operation.kind not in {Kind.UPLOAD, Kind.RESUMABLE_START}:
        return call
    if operation.target.name and "uploadType=media" in call.query:
        return call
    if operation.kind is Kind.RESUMABLE_START:
        metadata = await read_all(call.body)
        name, call.body = name_in_metadata(metadata), once(metadata)
    else:
        name, call.body = await peek_name(call.body)
    if operation.target.name:  # the query's counts, if both are there
        call.names = [name]
    else:
        call.operation = replace(operation, target=replace(operation.target, name=name))
    return call
