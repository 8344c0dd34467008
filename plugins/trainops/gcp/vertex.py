"""Vertex AI custom jobs, in the JSON of Google's REST.

REST and not Google's client: that takes seconds of CPU to import, and its endpoint is not a setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trainops.errors import CapacityError, RequestRefused, TransientError
from trainops.gcp.session import Json, Session

if TYPE_CHECKING:
    from trainops.settings import Settings

PAGE_SIZE = 100
"""Jobs a page. The most is not documented for these lists; Vertex AI's lists of models and endpoints take 100."""

Jobs = list[Json]


class Vertex:
    """Custom jobs of one project and region; a job of another region is reached by its name."""

    def __init__(self, session: Session, settings: Settings, region: str) -> None:
        self._session = session
        self._settings = settings
        self.region = region

    @classmethod
    def connect(cls, settings: Settings, credentials: Any = None, region: str | None = None) -> Vertex:
        """Return a client.

        :param credentials: of the Airflow connection; without them the application default ones are used.
        :param region: where jobs are created and listed; the environment's when None.
        :raises AccessError: no credentials were found.
        """
        return cls(Session.connect(settings, credentials), settings, region or settings.region)

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def create(self, job: Json) -> Json:
        """Create a custom job and return it as Vertex keeps it.

        :raises CapacityError: 429, a quota is used up; the message is Vertex's.
        :raises RequestRefused: the job is wrong; the message names its fields.
        :raises AccessError: the caller may not create jobs, or not as this service account.
        :raises NotFoundError: no such project or region.
        :raises NotSentError: no job was created, since Vertex never saw the request.
        :raises TransientError: it is not known whether the job was created: look for it by its labels.
        """
        try:
            return self._session.call("POST", self._collection(), body=job)
        except TransientError as error:
            if error.status == 429:
                raise CapacityError(str(error)) from error
            raise

    def get(self, name: str) -> Json:
        """Return a job.

        :raises NotFoundError: no such job.
        """
        return self._session.call("GET", self._url(name))

    def list(self, filter: str = "", fields: Sequence[str] = ()) -> Jobs:  # ruff: ignore[builtin-argument-shadowing] - the API's own name
        """Return the jobs that match `filter`, of all pages, newest first as Vertex lists them.

        :param filter: in Google's words: `labels.run-key="x" AND state="JOB_STATE_RUNNING"`.
        :param fields: those of a job that are wanted, in the words of its JSON; all when empty.
        """
        query: Json = {"pageSize": PAGE_SIZE}
        if filter:
            query["filter"] = filter
        if fields:
            query["readMask"] = ",".join(fields)
        return [*self._session.pages("GET", self._collection(), "customJobs", query)]

    def cancel(self, name: str) -> None:
        """Ask that a job be cancelled; its state tells when it is.

        :raises RequestRefused: the job has ended.
        """
        self._session.call("POST", f"{self._url(name)}:cancel", body={})

    def delete(self, name: str) -> Json:
        """Delete a job that has ended and return the operation that deletes it."""
        return self._session.call("DELETE", self._url(name))

    def _collection(self) -> str:
        base = self._settings.vertex_endpoint(self.region)
        return f"{base}/v1/projects/{self._settings.project}/locations/{self.region}/customJobs"

    def _url(self, name: str) -> str:
        return f"{self._settings.vertex_endpoint(region_of(name))}/v1/{name}"


def region_of(name: str) -> str:
    """Return the region in a job's name, `projects/P/locations/REGION/customJobs/N`.

    :raises RequestRefused: it is no such name.
    """
    match name.split("/"):
        case ["projects", _, "locations", region, "customJobs", number] if region and number:
            return region
    raise RequestRefused(f"{name!r} is not a job's name of the form projects/P/locations/REGION/customJobs/NUMBER")
