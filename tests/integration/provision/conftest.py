"""A Google Cloud project that lives in one HTTP server: the few calls that set one up, with their state."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from trainops.gcp.project import Addresses
from trainops.settings import Settings

Answer = tuple[int, dict[str, Any]]


def refusal(status: int, message: str) -> Answer:
    return status, {"error": {"code": status, "message": message}}


@dataclass
class GoogleProject:
    """State that the tests look at; `writes` are the changing calls, in order."""

    url: str = ""
    enabled: set[str] = field(default_factory=set)
    buckets: dict[str, dict[str, Any]] = field(default_factory=dict)
    accounts: dict[str, dict[str, Any]] = field(default_factory=dict)
    policies: dict[str, dict[str, Any]] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    refusals: dict[str, list[Answer]] = field(default_factory=dict)
    """Answers, by the end of the path, that come before the real one."""
    operations: int = 0

    @property
    def addresses(self) -> Addresses:
        return Addresses(self.url, self.url, self.url, self.url)

    def answer(self, method: str, target: str, body: dict[str, Any]) -> Answer:
        url = urlsplit(target)
        for end, answers in self.refusals.items():
            if url.path.endswith(end) and answers:
                return answers.pop(0)
        if method != "GET" and not url.path.endswith((":getIamPolicy", "/token")):
            self.writes.append(f"{method} {url.path}")
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        routes = (self._storage, self._accounts, self._others)
        path = url.path.strip("/").split("/")
        found = (route(method, path, query, body) for route in routes)
        return next((answer for answer in found if answer), refusal(404, f"no such path: {method} {url.path}"))

    def _storage(self, method: str, path: list[str], query: dict[str, str], body: dict[str, Any]) -> Answer | None:
        match path:
            case ["storage", "v1", "b"]:
                return self._created(self.buckets, body["name"], body)
            case ["storage", "v1", "b", name]:
                return self._bucket(method, name, body)
            case ["storage", "v1", "b", name, "iam"]:
                version = query.get("optionsRequestedPolicyVersion")
                found = self.buckets.get(name)
                return self._policy(f"bucket {name}", found, version, body if method == "PUT" else None)
        return None

    def _accounts(self, method: str, path: list[str], query: dict[str, str], body: dict[str, Any]) -> Answer | None:
        match path:
            case ["v1", "projects", project, "serviceAccounts"]:
                email = f"{body['accountId']}@{project}.iam.gserviceaccount.com"
                return self._created(self.accounts, email, {"email": email, **body["serviceAccount"]})
            case ["v1", "projects", _, "serviceAccounts", email] if ":" not in email:
                return (200, self.accounts[email]) if email in self.accounts else refusal(404, "Unknown account")
            case ["v1", "projects", _, "serviceAccounts", target]:
                email, _, verb = target.partition(":")
                version = query.get("options.requestedPolicyVersion")
                return self._policy(email, self.accounts.get(email), version, self._sent(verb, body))
        return None

    def _others(self, method: str, path: list[str], query: dict[str, str], body: dict[str, Any]) -> Answer | None:
        match path:
            case ["token"]:
                return 200, {"access_token": "token", "expires_in": 3600, "token_type": "Bearer"}
            case ["v1", "operations", name]:
                return 200, {"name": f"operations/{name}", "done": True, "response": {}}
            case ["v1", "projects", _, "services", name]:
                return self._service(name)
            case ["v1", "projects", target]:
                project, _, verb = target.partition(":")
                version = body.get("options", {}).get("requestedPolicyVersion")
                return self._policy(project, {}, version, self._sent(verb, body))
        return None

    def _service(self, target: str) -> Answer:
        name, _, verb = target.partition(":")
        if verb == "enable":
            self.enabled.add(name)
            self.operations += 1
            return 200, {"name": f"operations/{self.operations}"}
        return 200, {"name": name, "state": "ENABLED" if name in self.enabled else "DISABLED"}

    @staticmethod
    def _created(there: dict[str, dict[str, Any]], name: str, value: dict[str, Any]) -> Answer:
        if name in there:
            return refusal(409, f"{name} already exists")
        there[name] = value
        return 200, value

    def _bucket(self, method: str, name: str, body: dict[str, Any]) -> Answer:
        if name not in self.buckets:
            return refusal(404, "The specified bucket does not exist.")
        if method == "PATCH":
            self.buckets[name].update(body)
        return 200, self.buckets[name]

    @staticmethod
    def _sent(verb: str, body: dict[str, Any]) -> dict[str, Any] | None:
        return body["policy"] if verb == "setIamPolicy" else None

    def _policy(self, key: str, resource: Any, version: Any, sent: dict[str, Any] | None) -> Answer:
        if resource is None:
            return refusal(404, f"{key} does not exist")
        now = self.policies.setdefault(key, {"etag": "1", "bindings": []})
        if sent is None:
            return (200, now) if str(version) == "3" else refusal(400, "conditions need version 3")
        if sent["etag"] != now["etag"]:
            return refusal(409, "There were concurrent policy changes.")
        self.policies[key] = {**sent, "etag": str(int(now["etag"]) + 1)}
        return 200, self.policies[key]


@pytest.fixture
def google() -> Iterator[GoogleProject]:
    project = GoogleProject()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = json.loads(text) if text.startswith(b"{") else {}
            status, value = project.answer(self.command, self.path, body)
            reply = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        do_GET = do_POST = do_PUT = do_PATCH = answer  # ruff: ignore[mixed-case-variable-in-class-scope]

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    project.url = f"http://127.0.0.1:{server.server_port}"
    yield project
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def settings() -> Settings:
    return Settings.model_validate({
        "name": "gcp",
        "project": "test-llm",
        "project_number": "100000000001",
        "region": "europe-west4",
        "credentials": "google",
        "service_account": "trainops@test-llm.iam.gserviceaccount.com",
    })
