"""Links to Google's console: the job, and its log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk.types import TaskInstanceKey

CONSOLE = "https://console.cloud.google.com"


def job_url(job_name: str) -> str:
    """The page of a custom job, `projects/P/locations/R/customJobs/N`."""
    _, project, _, region, _, number = job_name.split("/")
    return f"{CONSOLE}/vertex-ai/locations/{region}/training/{number}/cpu?project={project}"


def log_url(job_name: str) -> str:
    """The log of a custom job."""
    _, project, _, _, _, number = job_name.split("/")
    query = f'resource.type="ml_job"\nresource.labels.job_id="{number}"'
    return f"{CONSOLE}/logs/query;query={quote(query, safe='')}?project={project}"


class VertexJobLink(BaseOperatorLink):
    """The job in Google's console."""

    name = "Vertex AI job"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:
        """The link of the job that the operator submitted; empty before that."""
        job_name = getattr(operator, "job_name", None)
        return job_url(job_name) if job_name else ""
