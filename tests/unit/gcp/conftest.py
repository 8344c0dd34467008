"""An HTTP server that answers what a test tells it to, and remembers what it was asked."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from trainops.settings import Settings


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, str]
    body: Any
    headers: dict[str, str]


@dataclass
class ScriptedServer:
    """Answers requests with `replies`, in order: (status, JSON value or text)."""

    url: str = ""
    replies: list[tuple[int, Any]] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)

    def refuse(self, status: int, message: str) -> None:
        self.replies.append((status, {"error": {"code": status, "message": message, "status": "X"}}))


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    script = ScriptedServer()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            url = urlsplit(self.path)
            text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            is_form = "urlencoded" in self.headers.get("Content-Type", "")
            body = dict(parse_qsl(text.decode())) if is_form else json.loads(text) if text else None
            headers = {name.lower(): value for name, value in self.headers.items()}
            script.asked.append(Asked(self.command, url.path, dict(parse_qsl(url.query)), body, headers))
            status, value = script.replies.pop(0)
            reply = value.encode() if isinstance(value, str) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        do_GET = do_POST = do_DELETE = answer  # ruff: ignore[mixed-case-variable-in-class-scope]

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=http.serve_forever, args=(0.02,))
    thread.start()
    script.url = f"http://127.0.0.1:{http.server_port}"
    yield script
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.fixture
def settings(server: ScriptedServer) -> Settings:
    return Settings.model_validate({
        "name": "test",
        "project": "test-llm",
        "project_number": "100000000001",
        "region": "us-central1",
        "credentials": "anonymous",
        "endpoints": {"vertex": server.url, "storage": server.url, "logging": server.url},
    })
