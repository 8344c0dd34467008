"""Requests to Google's REST services: authorized, with a timeout, errors told in our own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from trainops.gcp.credentials import credentials_for
from trainops.gcp.faults import not_sent, reply_code, reply_text, service_error, service_errors

if TYPE_CHECKING:
    from trainops.settings import Settings

TIMEOUT = (10, 60)
"""Seconds to connect, and between two bytes of a reply."""

CONNECTIONS = 32
"""Connections that a session keeps open to a host, for threads that ask at once; `requests` keeps 10, and opens and
closes one for each call beyond."""

Json = dict[str, Any]


class Session:
    """An HTTP session with credentials; asks once, so that a caller knows that a create was sent once."""

    def __init__(self, session: Any) -> None:
        self._session = session

    @classmethod
    def connect(cls, settings: Settings, credentials: Any = None) -> Session:
        """Return a session.

        :param credentials: of the Airflow connection; without them the application default ones are used.
        :raises AccessError: no credentials were found.
        """
        if settings.credentials == "anonymous":
            import requests

            return cls(keep_connections(requests.Session()))
        from google.auth.transport.requests import AuthorizedSession

        authorized: Any = AuthorizedSession
        return cls(keep_connections(authorized(credentials_for(settings, credentials))))

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def call(
        self, method: str, url: str, *, params: Mapping[str, Any] | None = None, body: Mapping[str, Any] | None = None
    ) -> Json:
        """Send one request and return the JSON object of its reply.

        Raises the ServiceError family; a TransientError of a request that changes something means that it is not
        known whether it was carried out, except for NotSentError: then it was not.
        """
        what = f"{method} {url}"
        with service_errors(what, not_sent):
            reply = self._session.request(method, url, params=params, json=body, timeout=TIMEOUT, allow_redirects=False)
            if not 200 <= reply.status_code < 300:
                told = f"{reply_text(reply)} (HTTP {reply.status_code}, {what})"
                raise service_error(reply.status_code, told, reply_code(reply))
            value: Json = reply.json() if reply.content else {}
        return value

    def pages(self, method: str, url: str, key: str, query: Mapping[str, Any]) -> Iterator[Json]:
        """Yield the items under `key` of every page; `query` goes into the body of a POST, else into the URL."""
        token: str | None = None
        while True:
            asked = {**query, "pageToken": token} if token else query
            page = self.call(method, url, body=asked) if method == "POST" else self.call(method, url, params=asked)
            yield from page.get(key, [])
            token = page.get("nextPageToken")
            if not token:
                return


def keep_connections(session: Any) -> Any:
    """Let a `requests` session keep `CONNECTIONS` open, and return it."""
    from requests.adapters import HTTPAdapter

    for scheme in ("https://", "http://"):
        session.mount(scheme, HTTPAdapter(pool_maxsize=CONNECTIONS))
    return session
